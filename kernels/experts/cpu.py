"""Native mixture of experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.program import Activation, Experts
from kernels.single import Floats, How, Weight, run


@dataclass(frozen=True)
class ExpertWeights:
    """Of every expert: gate and up [width, channels], down [channels out, width]; biases [experts, rows].

    `factors` [3, experts]: of the products, biases included, of gate, up and down.
    """

    gate: Sequence[Weight]
    up: Sequence[Weight]
    down: Sequence[Weight]
    gate_bias: Floats | None = None
    up_bias: Floats | None = None
    down_bias: Floats | None = None
    factors: Floats | None = None


def experts(
    x: Floats,
    ids: NDArray[np.int64],
    shares: Floats,
    weights: ExpertWeights,
    activation: Activation = "silu",
    add_to: Floats | None = None,
    scale: float = 1.0,
    how: How | None = None,
) -> Floats:
    """scale * sum of shares * experts(x) [+ add_to]; x [T, channels], ids (ascending) and shares [T, used]."""
    count, used = len(weights.gate), ids.shape[1]
    tensors = [*weights.gate, *weights.up, *weights.down]
    places: list[int | None] = []
    for extra in (weights.gate_bias, weights.up_bias, weights.down_bias, weights.factors):
        places.append(None if extra is None else len(tensors))
        tensors += [] if extra is None else [Weight.f32(extra)]
    first = 2, 0, 1, count, used, 0, count, 2 * count
    gate, up, down, factors = places
    op = Experts(*first, gate, up, down, factors, activation, add_to is not None, scale)
    given = {0: x, 1: np.concatenate([ids, shares], 1).astype(np.float32)}
    if add_to is not None:
        given[2] = add_to
    widths = [weights.gate[0].cols, 2 * used, weights.down[0].rows]
    return run(op, given, 2, widths, tensors, how=how)
