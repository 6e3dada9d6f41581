"""Stored blocks to float32, in numpy, for the types listed here; exact to the reference conversion.

Block layouts (ggml-common.h), all little-endian, 32 elements per block:
Q4_0: f16 d, 16 bytes of nibbles; x = d * (n - 8). Q4_1: f16 d, f16 m, nibbles; x = d * n + m.
Q8_0: f16 d, 32 int8; x = d * q. Low nibbles are elements 0 to 15, high nibbles 16 to 31.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from engine.gguf.types import GGML_TYPES

_Bytes = npt.NDArray[np.uint8]
_Floats = npt.NDArray[np.float32]


def dequantise(raw: _Bytes, ggml_type: int, cols: int) -> _Floats:
    """`raw`: the bytes of whole rows, any shape. Returns float32 [rows, cols]. KeyError for other types."""
    kind = GGML_TYPES[ggml_type]
    blocks = np.ascontiguousarray(raw).reshape(-1, kind.size)
    return _CONVERSIONS[ggml_type](blocks).reshape(-1, cols)


def _f16(columns: _Bytes) -> _Floats:
    return np.ascontiguousarray(columns).view("<f2").astype(np.float32)


def _f32_blocks(blocks: _Bytes) -> _Floats:
    return blocks.view("<f4").astype(np.float32)


def _bf16_blocks(blocks: _Bytes) -> _Floats:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _nibbles(packed: _Bytes) -> _Floats:
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def _q4_0(blocks: _Bytes) -> _Floats:
    return _f16(blocks[:, :2]) * (_nibbles(blocks[:, 2:]) - np.float32(8))


def _q4_1(blocks: _Bytes) -> _Floats:
    return _f16(blocks[:, :2]) * _nibbles(blocks[:, 4:]) + _f16(blocks[:, 2:4])


def _q8_0(blocks: _Bytes) -> _Floats:
    return _f16(blocks[:, :2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


_CONVERSIONS: MappingProxyType[int, Callable[[_Bytes], _Floats]] = MappingProxyType(
    {0: _f32_blocks, 1: _f16, 30: _bf16_blocks, 2: _q4_0, 3: _q4_1, 8: _q8_0}
)
DEQUANTISED_TYPES = frozenset(_CONVERSIONS)
