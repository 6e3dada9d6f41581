"""The checksums by the xxhash package."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xxhash
from numpy.typing import NDArray

Part = tuple[NDArray[np.uint8], NDArray[np.int64], bytes]


def intact(parts: Iterable[Part]) -> list[bool]:
    """Of each part (data, pieces int64 [n, 2]: start and stop in the data, n sums) whether its pieces have their sums.

    A sum is the XXH3-128 of a piece, 16 bytes, big-endian.
    """
    return [sums == b"".join(_sums(data, pieces)) for data, pieces, sums in parts]


def _sums(data: NDArray[np.uint8], pieces: NDArray[np.int64]) -> Iterable[bytes]:
    return (xxhash.xxh3_128_digest(data[start:stop].data) for start, stop in pieces.tolist())
