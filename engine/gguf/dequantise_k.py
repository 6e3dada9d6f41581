"""Superblocks of 256 elements with scales of their own sub-blocks: k-quants and ternary types, to float32.

Layouts (ggml-common.h), f16 d (and dmin) per superblock:
Q2_K: 16 bytes scale | min << 4 of 16 elements each, 64 bytes of two bits, d, dmin. Q3_K: 32 bytes third bits,
64 bytes of two bits, 12 bytes of sixteen 6-bit scales, d. Q4_K: d, dmin, 12 bytes of eight 6-bit scales and
mins, 128 bytes of nibbles. Q5_K: the same with 32 bytes of fifth bits before the nibbles. Q6_K: 128 bytes of
low nibbles, 64 bytes of two high bits, 16 int8 scales, d. TQ1_0: 48 + 4 bytes of base-3 digits, d. TQ2_0: 64
bytes of two bits, d.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from engine.gguf.blocks import Blocks, Conversion, Floats, f16, shifted

_PAIRS = (0, 2, 4, 6)


def _two_bits(packed: Blocks) -> Floats:
    """64 bytes to 256 codes: per half of 32 bytes all lowest pairs, then the next ones, ..."""
    halves = packed.reshape(-1, 2, 1, 32)
    return shifted(halves.transpose(0, 1, 3, 2), _PAIRS, 3).transpose(0, 1, 3, 2).reshape(-1, 256)


def _spread(scales: Floats, elements: int) -> Floats:
    """One scale per sub-block to one per element."""
    return np.repeat(scales, elements, axis=1)


def _q2_k(blocks: Blocks) -> Floats:
    scales, d, dmin = blocks[:, :16], f16(blocks[:, 80:82]), f16(blocks[:, 82:84])
    factor, offset = d * (scales & 15).astype(np.float32), dmin * (scales >> 4).astype(np.float32)
    return _spread(factor, 16) * _two_bits(blocks[:, 16:80]) - _spread(offset, 16)


def _six_bit_scales(packed: Blocks) -> Floats:
    """12 bytes to sixteen 6-bit numbers: eight bytes of low nibbles, four of high pairs."""
    low = np.concatenate([packed[:, :8] & 15, packed[:, :8] >> 4], axis=1)
    high = np.concatenate([(packed[:, 8:] >> shift) & 3 for shift in _PAIRS], axis=1)
    return np.asarray(low | (high << 4), np.float32)


def _q3_k(blocks: Blocks) -> Floats:
    scales = f16(blocks[:, 108:110]) * (_six_bit_scales(blocks[:, 96:108]) - np.float32(32))
    high = np.unpackbits(blocks[:, :32, None], axis=2, bitorder="little").transpose(0, 2, 1).reshape(-1, 256)
    codes = _two_bits(blocks[:, 32:96]) - (1 - high).astype(np.float32) * np.float32(4)
    return _spread(scales, 16) * codes


def _scales_and_mins(packed: Blocks) -> tuple[Floats, Floats]:
    """12 bytes to eight scales and eight mins of 6 bits."""
    first, second, last = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, (last & 15) | ((first >> 6) << 4)], axis=1)
    mins = np.concatenate([second & 63, (last >> 4) | ((second >> 6) << 4)], axis=1)
    return scales.astype(np.float32), mins.astype(np.float32)


def _with_mins(blocks: Blocks, codes: Floats) -> Floats:
    """codes [n, 256] by the scales and mins at the start of Q4_K and Q5_K blocks."""
    scales, mins = _scales_and_mins(blocks[:, 4:16])
    factor, offset = f16(blocks[:, :2]) * scales, f16(blocks[:, 2:4]) * mins
    return _spread(factor, 32) * codes - _spread(offset, 32)


def _four_bits(packed: Blocks) -> Floats:
    """128 bytes to 256 codes: per 32 bytes the low nibbles, then the high ones."""
    groups = packed.reshape(-1, 4, 1, 32)
    return np.concatenate([groups & 15, groups >> 4], axis=2).reshape(-1, 256).astype(np.float32)


def _q4_k(blocks: Blocks) -> Floats:
    return _with_mins(blocks, _four_bits(blocks[:, 16:144]))


def _q5_k(blocks: Blocks) -> Floats:
    high = np.unpackbits(blocks[:, 16:48, None], axis=2, bitorder="little").transpose(0, 2, 1).reshape(-1, 256)
    return _with_mins(blocks, _four_bits(blocks[:, 48:176]) + high.astype(np.float32) * np.float32(16))


def _q6_k(blocks: Blocks) -> Floats:
    packed = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([packed & 15, packed >> 4], axis=2).reshape(-1, 256)
    codes = low.astype(np.float32) + _two_bits(blocks[:, 128:192]) * np.float32(16) - np.float32(32)
    scales = f16(blocks[:, 208:210]) * blocks[:, 192:208].view(np.int8).astype(np.float32)
    return _spread(scales, 16) * codes


def _trits(packed: Blocks, digits: int) -> Floats:
    """Bytes that hold base-3 fractions, most significant digit first: digit by digit, -1, 0 or 1."""
    powers = (3 ** np.arange(digits)).astype(np.uint8)
    rolled = (packed[:, None, :] * powers[:, None]).astype(np.uint16)  # products wrap at 256, as meant
    return ((rolled * 3) >> 8).reshape(len(packed), -1).astype(np.float32) - np.float32(1)


def _tq1_0(blocks: Blocks) -> Floats:
    parts = [_trits(blocks[:, :32], 5), _trits(blocks[:, 32:48], 5), _trits(blocks[:, 48:52], 4)]
    return f16(blocks[:, 52:54]) * np.concatenate(parts, axis=1)


def _tq2_0(blocks: Blocks) -> Floats:
    return f16(blocks[:, 64:66]) * (_two_bits(blocks[:, :64]) - np.float32(1))


K_CONVERSIONS: MappingProxyType[int, Conversion] = MappingProxyType(
    {10: _q2_k, 11: _q3_k, 12: _q4_k, 13: _q5_k, 14: _q6_k, 34: _tq1_0, 35: _tq2_0}
)
