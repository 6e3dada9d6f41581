"""Native residual operations."""

from __future__ import annotations

from kernels.program import Add, SigmoidGate
from kernels.single import Floats, How, Weight, run


def add(x: Floats, src: Floats, scale: float = 1.0, how: How | None = None) -> Floats:
    """x + scale * src, both [T, width]."""
    return run(Add(0, 1, scale), {0: x, 1: src}, 0, [x.shape[1]] * 2, how=how)


def sigmoid_gate(x: Floats, src: Floats, weight: Floats, how: How | None = None) -> Floats:
    """x[t] * sigmoid(src[t] . weight); x [T, width], src [T, n], weight [n]."""
    widths = [x.shape[1], src.shape[1]]
    return run(SigmoidGate(0, 1, 0), {0: x, 1: src}, 0, widths, [Weight.f32(weight)], how=how)
