"""Native checksums: many pages in one call without the GIL, so that other threads go on meanwhile.

One call of the xxhash package a layer, 1,860 for 184 MB, made reading threads and the engine queue for the GIL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernels.checksum import reference
from kernels.checksum.reference import Part
from kernels.native_program import default_isa, native_module

SHORTEST = 241  # the native code knows the algorithm for long inputs


def intact(parts: Sequence[Part], isa: str | None = None) -> list[bool]:
    """See reference.intact. ValueError: pieces outside their data."""
    for data, pieces, sums in parts:
        if len(sums) != 16 * len(pieces) or not _inside(pieces, len(data)):
            raise ValueError("pieces and sums do not fit the data")
    lengths = [pieces[:, 1] - pieces[:, 0] for _, pieces, _ in parts]
    if any((length < SHORTEST).any() for length in lengths):
        return reference.intact(parts)
    addresses = [_address(data) + pieces[:, 0].astype(np.uint64) for data, pieces, _ in parts]
    counts = np.array([len(length) for length in lengths], np.int64)
    sums = b"".join(part[2] for part in parts)
    native = native_module().parts_intact
    return list(map(bool, native(_joined(addresses), _joined(lengths), counts, sums, isa or default_isa())))


def _joined(arrays: Sequence[NDArray[np.uint64]] | Sequence[NDArray[np.int64]]) -> NDArray[np.uint64 | np.int64]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def _address(data: NDArray[np.uint8]) -> np.uint64:
    return np.uint64(data.__array_interface__["data"][0])


def _inside(pieces: NDArray[np.int64], size: int) -> bool:
    return not len(pieces) or bool(pieces.min() >= 0 and pieces.max() <= size and (pieces[:, 0] <= pieces[:, 1]).all())
