"""The truth for the mixture of experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernels.gated.reference import gated
from kernels.linear.reference import linear, round_activations
from kernels.program import Activation


@dataclass(frozen=True)
class ExpertTensors:
    """Per expert float32 gate and up [width, channels], down [channels out, width]; biases [experts, rows].

    `rounded`: channels with one int8 scale in the activations that products see, 0 for float32: gate and up, down.
    `factors` [3, experts]: of the products, biases included, of gate, up and down.
    """

    gate: Sequence[torch.Tensor]
    up: Sequence[torch.Tensor]
    down: Sequence[torch.Tensor]
    gate_bias: torch.Tensor | None = None
    up_bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None
    rounded: tuple[int, int] = (0, 0)
    factors: torch.Tensor | None = None


def _product(x: torch.Tensor, w: ExpertTensors, part: int, e: int) -> torch.Tensor:
    """Of gate (0), up (1) or down (2)."""
    weight, biases = ((w.gate, w.gate_bias), (w.up, w.up_bias), (w.down, w.down_bias))[part]
    channels = w.rounded[part == 2]
    seen = round_activations(x, channels) if channels else x
    product = linear(seen, weight[e], None if biases is None else biases[e])
    return product if w.factors is None else product * w.factors[part, e]


def experts(
    x: torch.Tensor, ids: torch.Tensor, shares: torch.Tensor, w: ExpertTensors, activation: Activation = "silu"
) -> torch.Tensor:
    """x [T, channels], ids and shares [T, used] -> [T, channels out], experts ascending."""
    out = torch.zeros(len(x), len(w.down[0]))
    for e in sorted(set(ids.flatten().tolist())):
        rows, places = (ids == e).nonzero(as_tuple=True)
        opened = gated(_product(x[rows], w, 0, e), _product(x[rows], w, 1, e), activation)
        out[rows] += _product(opened, w, 2, e) * shares[rows, places, None]
    return out
