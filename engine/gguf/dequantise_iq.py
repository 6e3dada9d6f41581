"""Superblocks of 256 elements whose codes are indices into codebooks: i-quants, to float32.

Layouts (ggml-common.h), f16 d first unless said; groups of 32 elements are 4 x 8 values:
IQ2_XXS: 8 bytes per group: 4 indices, then 4 x 7 sign bits and a 4-bit scale. IQ2_XS: 16 bits per 8 values:
9-bit index, 7 sign bits; then 8 bytes of two 4-bit scales. IQ2_S: 32 low index bytes, 32 sign bytes, 8 bytes of
high index bits, 8 of scales. IQ3_XXS: 64 indices of 4 values each, then 4 x 7 sign bits and a scale per group.
IQ3_S: 64 indices, 8 bytes of ninth bits, 32 sign bytes, 4 bytes of scales. IQ1_S: 32 low index bytes; 16 bits
per group: 4 x 3 high bits, 3-bit scale, sign of the shift. IQ1_M: 32 low index bytes, 16 bytes of 3 high bits
and the sign of the shift per 8 values, 4 x 16 bits of four 3-bit scales each whose top nibbles together are d.
IQ4_XS: d, 16 + 32 bits of scales, nibbles into a table. Seven sign bits stand for eight signs of even parity.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from engine.gguf.blocks import Blocks, Conversion, Floats, f16, nibbles, shifted, u16, u32
from engine.gguf.codebooks import codebook

Unsigned = npt.NDArray[np.uint32]

IQ4_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
_SHIFT = np.float32(0.125)


def _even_parity() -> Blocks:
    """The eight sign bits of each 7-bit code."""
    codes = np.arange(128)
    return np.asarray([code | (bin(code).count("1") % 2) << 7 for code in codes], np.uint8)


_SIGNS = _even_parity()


def _signs(masks: npt.NDArray[np.integer]) -> Floats:
    """Sign bytes [..., k] to factors [..., k, 8]: -1 where a bit is set."""
    set_bits = np.unpackbits(masks.astype(np.uint8)[..., None], axis=-1, bitorder="little")
    return (1 - 2 * set_bits.astype(np.int8)).astype(np.float32)


def _seven_bit_signs(words: Unsigned) -> Floats:
    """Four 7-bit codes in the low bits of each word [n, 8]: factors [n, 32, 8]."""
    codes = (words[:, :, None] >> np.asarray([0, 7, 14, 21], np.uint32)) & np.uint32(127)
    return _signs(_SIGNS[codes.reshape(len(words), -1)])


def _split_nibbles(packed: Blocks) -> Floats:
    """[n, k] bytes to [n, 2k]: low nibble, high nibble, next byte, ..."""
    return shifted(packed[:, :, None], (0, 4), 15).reshape(len(packed), -1)


def _scaled(scales: Floats, values: Floats) -> Floats:
    """scales [n, s] over values [n, ...] of 256 elements, each over a run of 256 / s."""
    return np.repeat(scales, 256 // scales.shape[1], axis=1) * values.reshape(len(values), 256)


def _iq2_xxs(blocks: Blocks) -> Floats:
    groups = np.ascontiguousarray(blocks[:, 2:]).reshape(-1, 8, 8)
    words = np.ascontiguousarray(groups[:, :, 4:]).view("<u4").reshape(-1, 8).astype(np.uint32)
    scales = f16(blocks[:, :2]) * (np.float32(0.5) + (words >> 28).astype(np.float32)) * np.float32(0.25)
    patterns = codebook("IQ2_XXS")[groups[:, :, :4].reshape(-1, 32)]
    return _scaled(scales, patterns * _seven_bit_signs(words))


def _iq2_xs(blocks: Blocks) -> Floats:
    codes = u16(blocks[:, 2:66])
    nibble_scales = _split_nibbles(blocks[:, 66:74])
    scales = f16(blocks[:, :2]) * (np.float32(0.5) + nibble_scales) * np.float32(0.25)
    return _scaled(scales, codebook("IQ2_XS")[codes & 511] * _signs(_SIGNS[codes >> 9]))


def _with_high_bits(low: Blocks, high: Blocks, shifts: tuple[int, ...], mask: int) -> Unsigned:
    """Low index bytes [n, k], and index bits from 8 on: per byte of `high` one field at each shift."""
    fields = (high[:, :, None] >> np.asarray(shifts, np.uint8)) & np.uint8(mask)
    return np.asarray(low.astype(np.uint32) | fields.reshape(len(low), -1).astype(np.uint32) << 8)


def _iq2_s(blocks: Blocks) -> Floats:
    codes = _with_high_bits(blocks[:, 2:34], blocks[:, 66:74], (0, 2, 4, 6), 3)
    nibble_scales = _split_nibbles(blocks[:, 74:82])
    scales = f16(blocks[:, :2]) * (np.float32(0.5) + nibble_scales) * np.float32(0.25)
    return _scaled(scales, codebook("IQ2_S")[codes] * _signs(blocks[:, 34:66]))


def _iq3_xxs(blocks: Blocks) -> Floats:
    words = u32(blocks[:, 66:98])
    scales = f16(blocks[:, :2]) * (np.float32(0.5) + (words >> 28).astype(np.float32)) * np.float32(0.5)
    patterns = codebook("IQ3_XXS")[blocks[:, 2:66]].reshape(-1, 32, 8)
    return _scaled(scales, patterns * _seven_bit_signs(words))


def _iq3_s(blocks: Blocks) -> Floats:
    codes = _with_high_bits(blocks[:, 2:66], blocks[:, 66:74], tuple(range(8)), 1)
    scales = f16(blocks[:, :2]) * (1 + 2 * _split_nibbles(blocks[:, 106:110]))
    patterns = codebook("IQ3_S")[codes].reshape(-1, 32, 8)
    return _scaled(scales, patterns * _signs(blocks[:, 74:106]))


def _iq1_s(blocks: Blocks) -> Floats:
    heads = u16(blocks[:, 34:50])
    fields = (heads[:, :, None] >> np.asarray([0, 3, 6, 9], np.uint32)) & np.uint32(7)
    codes = blocks[:, 2:34].astype(np.uint32) | fields.reshape(-1, 32) << 8
    scales = f16(blocks[:, :2]) * (2 * ((heads >> 12) & 7) + 1).astype(np.float32)
    shift = np.where(heads & 0x8000, -_SHIFT, _SHIFT).repeat(4, axis=1)
    return _scaled(scales, codebook("IQ1_S")[codes] + shift[:, :, None])


def _iq1_m(blocks: Blocks) -> Floats:
    words = u16(blocks[:, 48:56])
    top = (words >> 12) << np.asarray([0, 4, 8, 12], np.uint32)
    d = top.sum(axis=1).astype(np.uint16).view(np.float16).astype(np.float32)[:, None]
    scales = d * (2 * shifted(words[:, :, None], (0, 3, 6, 9), 7).reshape(-1, 16) + 1)
    codes = _with_high_bits(blocks[:, :32], blocks[:, 32:48], (0, 4), 7)
    negative = (blocks[:, 32:48, None] >> np.asarray([3, 7], np.uint8)) & 1
    shift = np.where(negative, -_SHIFT, _SHIFT).reshape(-1, 32)
    return _scaled(scales, codebook("IQ1_S")[codes] + shift[:, :, None])


def _iq4_xs(blocks: Blocks) -> Floats:
    high = shifted(u16(blocks[:, 2:4]), (0, 2, 4, 6, 8, 10, 12, 14), 3)
    steps = _split_nibbles(blocks[:, 4:8]) + high * np.float32(16) - np.float32(32)
    codes = nibbles(blocks[:, 8:136].reshape(-1, 16)).astype(np.intp)
    return _scaled(f16(blocks[:, :2]) * steps, IQ4_VALUES[codes].reshape(-1, 256))


IQ_CONVERSIONS: MappingProxyType[int, Conversion] = MappingProxyType(
    {16: _iq2_xxs, 17: _iq2_xs, 18: _iq3_xxs, 19: _iq1_s, 21: _iq3_s, 22: _iq2_s, 23: _iq4_xs, 29: _iq1_m}
)
