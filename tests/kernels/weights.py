"""Random weights of every GGML type with finite scales."""

from __future__ import annotations

import numpy as np
from gguf import GGMLQuantizationType, dequantize, quantize

from engine.gguf.dequantise import dequantise
from engine.gguf.types import GGML_TYPES
from kernels.encoding import GGML_BLOCKS
from kernels.single import Weight

TYPES = {GGML_TYPES[number].name: number for number in GGML_BLOCKS}
FLOATS = ("F32", "F16", "BF16")
QUANTISED = tuple(name for name in TYPES if name not in FLOATS)
# Types whose scales lie per 16 channels, per 32 with minima, and per 32 without: one each for costly tests.
SOME = ("F32", "Q4_0", "Q4_1", "Q8_0", "Q2_K", "Q5_K", "Q6_K", "IQ3_S", "MXFP4")
_NOT_IN_GGUF = ("Q1_0", "Q2_0")
_QUANTISABLE = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0")
# Where a block of random bytes keeps its float16 scales.
_SCALES = {
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,),
    "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,), "IQ3_XXS": (0,), "IQ3_S": (0,), "IQ1_S": (0,), "Q1_0": (0,),
    "Q2_0": (0,), "IQ1_M": (), "MXFP4": (), "NVFP4": (),
}  # fmt: skip


def rounded_over(name: str) -> int:
    """Activation channels that share a scale beside this type; 0 beside floats."""
    if name in FLOATS:
        return 0
    return 256 if GGML_BLOCKS[TYPES[name]][0] == 256 else 32


def whole_columns(name: str, cols: int) -> int:
    """The least number of columns from `cols` on that this type can store."""
    elements = GGML_BLOCKS[TYPES[name]][0]
    return -(-cols // elements) * elements


def random_blocks(name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """[count, bytes of a block]: any codes, moderate scales of both signs."""
    raw = rng.integers(0, 256, (count, GGML_BLOCKS[TYPES[name]][1]), np.uint8)
    for at in _SCALES[name]:
        scale = (rng.uniform(0.002, 0.01, count) * rng.choice([-1, 1], count)).astype("<f2")
        raw[:, at : at + 2] = scale.view(np.uint8).reshape(count, 2)
    if name == "MXFP4":
        raw[:, 0] = rng.integers(118, 126, count)
    if name == "NVFP4":
        raw[:, :4] = rng.integers(0, 0x40, (count, 4))
    if name == "IQ1_M":  # the top nibbles of four words are one float16
        raw[:, 49:57:2] = raw[:, 49:57:2] & 15 | np.array([0, 0, 0, 0x20], np.uint8)[: raw[:, 49:57:2].shape[1]]
    return raw


def make(name: str, rows: int, cols: int, seed: int = 0) -> tuple[Weight, np.ndarray]:
    """(weight, its float32 values as the gguf package reads them)."""
    rng = np.random.default_rng(seed)
    kind = TYPES[name]
    if name in _QUANTISABLE:
        values = rng.standard_normal((rows, cols)).astype(np.float32) * 0.3 + 0.02
        data = np.ascontiguousarray(quantize(values, GGMLQuantizationType(kind)))
    else:
        data = random_blocks(name, rows * cols // GGML_BLOCKS[kind][0], rng).reshape(rows, -1)
    if name in _NOT_IN_GGUF:
        return Weight(data, kind, rows, cols), dequantise(data, kind, cols)
    read = np.asarray(dequantize(data, GGMLQuantizationType(kind)), np.float32)
    return Weight(data, kind, rows, cols), read.reshape(rows, cols)
