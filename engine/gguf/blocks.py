"""Numpy pieces that the conversions of storage types share; a row of `Blocks` is the bytes of one block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Blocks = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Conversion = Callable[[Blocks], Floats]


def f16(columns: Blocks) -> Floats:
    """Pairs of bytes [n, 2k] as float32 [n, k]."""
    return np.ascontiguousarray(columns).view("<f2").astype(np.float32)


def u16(columns: Blocks) -> npt.NDArray[np.uint32]:
    """Pairs of bytes [n, 2k] as unsigned integers [n, k]."""
    return np.ascontiguousarray(columns).view("<u2").astype(np.uint32)


def u32(columns: Blocks) -> npt.NDArray[np.uint32]:
    """Groups of four bytes [n, 4k] as unsigned integers [n, k]."""
    return np.ascontiguousarray(columns).view("<u4").astype(np.uint32)


def nibbles(packed: Blocks) -> Floats:
    """[n, k] bytes to [n, 2k]: all low nibbles, then all high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def bits(packed: Blocks) -> Floats:
    """[n, k] bytes to [n, 8k] zeros and ones, lowest bit first."""
    return np.unpackbits(packed, axis=1, bitorder="little").astype(np.float32)


def shifted(packed: npt.NDArray[np.unsignedinteger], shifts: tuple[int, ...], mask: int) -> Floats:
    """(packed >> shift) & mask as float32; `packed` broadcasts against the shifts in its last axis."""
    return ((packed >> np.asarray(shifts, packed.dtype)) & packed.dtype.type(mask)).astype(np.float32)
