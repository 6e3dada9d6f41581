"""The checksums by the xxhash package."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xxhash
from numpy.typing import NDArray


def layers_intact(payload: NDArray[np.uint8], pieces: NDArray[np.int64], sums: bytes) -> bool:
    """Whether each of `pieces` ([layers, 2]: start and stop in `payload`) has its XXH3-128 (16 bytes, big-endian)."""
    return all(xxhash.xxh3_128_digest(data) == total for data, total in _layers(payload, pieces, sums))


def _layers(payload: NDArray[np.uint8], pieces: NDArray[np.int64], sums: bytes) -> Iterator[tuple[memoryview, bytes]]:
    for number, (start, stop) in enumerate(pieces.tolist()):
        yield payload[start:stop].data, sums[16 * number : 16 * number + 16]
