"""Native gated activation."""

from __future__ import annotations

from kernels.program import Activation, Gated
from kernels.single import Floats, How, run


def gated(gate: Floats, up: Floats, activation: Activation = "silu", how: How | None = None) -> Floats:
    """activation(gate) * up, all [T, width]."""
    width = gate.shape[1]
    return run(Gated(2, 0, 1, activation), {0: gate, 1: up}, 2, [width] * 3, how=how)
