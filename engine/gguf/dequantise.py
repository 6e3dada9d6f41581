"""Stored blocks to float32, in numpy, for every storage type; exact to the reference conversion, bit for bit.

Block layouts (ggml-common.h), all little-endian. Of 32 elements: Q4_0: f16 d, 16 bytes of nibbles; x = d * (n -
8). Q4_1: f16 d, f16 m, nibbles; x = d * n + m. Q5_0, Q5_1: 32 bits with the fifth bits before the nibbles.
Q8_0: f16 d, 32 int8. IQ4_NL: f16 d, nibbles into a table. MXFP4: exponent byte, nibbles into a table. Of 64:
NVFP4: four E4M3 scales of 16 elements, nibbles; Q2_0: f16 d, two bits each. Of 128: Q1_0: f16 d, one bit each.
Low nibbles are the first half of a block, high nibbles the second. Superblocks of 256: `dequantise_k` and
`dequantise_iq`.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from engine.gguf.blocks import Blocks, Conversion, Floats, bits, f16, nibbles, shifted
from engine.gguf.dequantise_iq import IQ4_VALUES, IQ_CONVERSIONS
from engine.gguf.dequantise_k import K_CONVERSIONS
from engine.gguf.types import GGML_TYPES

# Twice the values of E2M1, the 4-bit float of the OCP microscaling formats.
_FP4_VALUES = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float32)


def dequantise(raw: Blocks, ggml_type: int, cols: int) -> Floats:
    """`raw`: the bytes of whole rows, any shape. Returns float32 [rows, cols]. KeyError for other types."""
    kind = GGML_TYPES[ggml_type]
    blocks = np.ascontiguousarray(raw).reshape(-1, kind.size)
    return _CONVERSIONS[ggml_type](blocks).reshape(-1, cols)


def _f32(blocks: Blocks) -> Floats:
    return blocks.view("<f4").astype(np.float32)


def _bf16(blocks: Blocks) -> Floats:
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(blocks: Blocks) -> Floats:
    return f16(blocks[:, :2]) * (nibbles(blocks[:, 2:]) - np.float32(8))


def _q4_1(blocks: Blocks) -> Floats:
    return f16(blocks[:, :2]) * nibbles(blocks[:, 4:]) + f16(blocks[:, 2:4])


def _five_bits(high: Blocks, packed: Blocks) -> Floats:
    return nibbles(packed) + bits(high) * np.float32(16)


def _q5_0(blocks: Blocks) -> Floats:
    return f16(blocks[:, :2]) * (_five_bits(blocks[:, 2:6], blocks[:, 6:]) - np.float32(16))


def _q5_1(blocks: Blocks) -> Floats:
    return f16(blocks[:, :2]) * _five_bits(blocks[:, 4:8], blocks[:, 8:]) + f16(blocks[:, 2:4])


def _q8_0(blocks: Blocks) -> Floats:
    return f16(blocks[:, :2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _iq4_nl(blocks: Blocks) -> Floats:
    return f16(blocks[:, :2]) * IQ4_VALUES[nibbles(blocks[:, 2:]).astype(np.intp)]


def _half_e8m0(exponents: Blocks) -> Floats:
    """2^(e - 128): half the scale, because the table holds twice the values; small ones are subnormal."""
    wide = exponents.astype(np.uint32)
    return np.where(wide < 2, np.uint32(0x200000) << wide, (wide - 1) << np.uint32(23)).view(np.float32)


def _mxfp4(blocks: Blocks) -> Floats:
    return _half_e8m0(blocks[:, :1]) * _FP4_VALUES[nibbles(blocks[:, 1:]).astype(np.intp)]


def _half_e4m3(codes: Blocks) -> Floats:
    """Half of unsigned E4M3 with bias 7; code 0x7F (no number) counts as zero."""
    exponent, mantissa = (codes >> 3).astype(np.int32) & 15, (codes & 7).astype(np.float32)
    normal = np.ldexp(1 + mantissa / 8, exponent - 8)
    values = np.where(exponent == 0, mantissa * np.float32(2**-10), normal)
    return np.where(codes == 0x7F, 0, values).astype(np.float32)


def _nvfp4(blocks: Blocks) -> Floats:
    scales = _half_e4m3(blocks[:, :4]).reshape(-1, 1)
    return scales * _FP4_VALUES[nibbles(blocks[:, 4:].reshape(-1, 8)).astype(np.intp)]


def _q1_0(blocks: Blocks) -> Floats:
    return f16(blocks[:, :2]) * (bits(blocks[:, 2:]) * np.float32(2) - np.float32(1))


def _q2_0(blocks: Blocks) -> Floats:
    codes = shifted(blocks[:, 2:, None], (0, 2, 4, 6), 3).reshape(len(blocks), 64)
    return f16(blocks[:, :2]) * (codes - np.float32(1))


_CONVERSIONS: MappingProxyType[int, Conversion] = MappingProxyType(
    {0: _f32, 1: f16, 30: _bf16, 2: _q4_0, 3: _q4_1, 6: _q5_0, 7: _q5_1, 8: _q8_0, 20: _iq4_nl, 39: _mxfp4}
    | {40: _nvfp4, 41: _q1_0, 42: _q2_0}
    | K_CONVERSIONS
    | IQ_CONVERSIONS
)
DEQUANTISED_TYPES = frozenset(_CONVERSIONS)
