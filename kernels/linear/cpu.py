"""Native matrix product."""

from __future__ import annotations

from kernels.program import Linear
from kernels.single import Floats, How, Weight, run


def linear(
    x: Floats,
    weight: Weight,
    bias: Floats | None = None,
    add_to: Floats | None = None,
    scale: float = 1.0,
    how: How | None = None,
) -> Floats:
    """scale * (x @ weight.T + bias) [+ add_to]; x [T, cols] -> [T, rows].

    Quantised weights multiply activations rounded to int8 with a scale per 32 channels, those with superblocks of 256
    per 256; sums are exact inside a block or superblock.
    """
    given = {0: x} if add_to is None else {0: x, 1: add_to}
    weights = [weight] if bias is None else [weight, Weight.f32(bias)]
    op = Linear(1, 0, 0, None if bias is None else 1, add_to is not None, scale)
    return run(op, given, 1, [weight.cols, weight.rows], weights, how=how)
