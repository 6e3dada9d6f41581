"""Native RMS normalisation."""

from __future__ import annotations

from kernels.program import HeadNorm, RmsNorm
from kernels.single import Floats, How, Weight, run


def rms_norm(x: Floats, weight: Floats, eps: float, how: How | None = None) -> Floats:
    """x [T, channels], weight [channels]."""
    width = x.shape[1]
    return run(RmsNorm(1, 0, 0, eps), {0: x}, 1, [width, width], [Weight.f32(weight)], how=how)


def head_norm(x: Floats, weight: Floats, heads: int, eps: float, how: How | None = None) -> Floats:
    """x [T, heads * head_dim]: the first len(weight) channels of each head on their own, the rest stays."""
    op = HeadNorm(0, 0, heads, x.shape[1] // heads, eps, len(weight))
    return run(op, {0: x}, 0, [x.shape[1]], [Weight.f32(weight)], how=how)
