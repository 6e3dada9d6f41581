"""Random weights of every GGML type with finite scales."""

from __future__ import annotations

import numpy as np
from gguf import GGMLQuantizationType, dequantize, quantize

from kernels.single import Weight

TYPES = {"F32": 0, "F16": 1, "BF16": 30, "Q4_0": 2, "Q4_1": 3, "Q8_0": 8}
QUANTISED = ("Q4_0", "Q4_1", "Q8_0")


def make(name: str, rows: int, cols: int, seed: int = 0) -> tuple[Weight, np.ndarray]:
    """(weight, its float32 values as the gguf package reads them)."""
    values = np.random.default_rng(seed).standard_normal((rows, cols)).astype(np.float32) * 0.3 + 0.02
    kind = GGMLQuantizationType[name]
    data = np.ascontiguousarray(quantize(values, kind))
    return Weight(data, TYPES[name], rows, cols), np.asarray(dequantize(data, kind), np.float32).reshape(rows, cols)
