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
    forms = {id(pieces): _Form(pieces) for _, pieces, _ in parts}  # parts of many pages have few forms
    used = [forms[id(pieces)] for _, pieces, _ in parts]
    if any(form.stop > len(part[0]) or len(part[2]) != 16 * form.count for form, part in zip(used, parts, strict=True)):
        raise ValueError("pieces and sums do not fit the data")
    if any(form.shortest < SHORTEST for form in forms.values()):
        return reference.intact(parts)
    addresses = [form.starts + _address(part[0]) for form, part in zip(used, parts, strict=True)]
    lengths, counts = [form.lengths for form in used], np.array([form.count for form in used], np.int64)
    sums = b"".join(part[2] for part in parts)
    native = native_module().parts_intact
    return list(map(bool, native(_joined(addresses), _joined(lengths), counts, sums, isa or default_isa())))


class _Form:
    """Pieces [n, 2] as the native code takes them. ValueError: they are in no data."""

    def __init__(self, pieces: NDArray[np.int64]) -> None:
        self.count, self.stop = len(pieces), int(pieces.max(initial=0))
        self.starts, self.lengths = pieces[:, 0].astype(np.uint64), pieces[:, 1] - pieces[:, 0]
        self.shortest = int(self.lengths.min(initial=SHORTEST))
        if self.shortest < 0 or pieces.min(initial=0) < 0:
            raise ValueError("pieces and sums do not fit the data")


def _joined(arrays: Sequence[NDArray[np.uint64]] | Sequence[NDArray[np.int64]]) -> NDArray[np.uint64 | np.int64]:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def _address(data: NDArray[np.uint8]) -> np.uint64:
    return np.uint64(data.__array_interface__["data"][0])
