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

    `rounded`: whether products see activations rounded to int8: those of gate and up, and those of down.
    """

    gate: Sequence[torch.Tensor]
    up: Sequence[torch.Tensor]
    down: Sequence[torch.Tensor]
    gate_bias: torch.Tensor | None = None
    up_bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None
    rounded: tuple[bool, bool] = (False, False)


def _product(x: torch.Tensor, weight: torch.Tensor, biases: torch.Tensor | None, e: int, rounded: bool) -> torch.Tensor:
    seen = round_activations(x) if rounded else x
    return linear(seen, weight, None if biases is None else biases[e])


def experts(
    x: torch.Tensor, ids: torch.Tensor, shares: torch.Tensor, w: ExpertTensors, activation: Activation = "silu"
) -> torch.Tensor:
    """x [T, channels], ids and shares [T, used] -> [T, channels out], experts ascending."""
    out = torch.zeros(len(x), len(w.down[0]))
    for e in sorted(set(ids.flatten().tolist())):
        rows, places = (ids == e).nonzero(as_tuple=True)
        gate = _product(x[rows], w.gate[e], w.gate_bias, e, w.rounded[0])
        up = _product(x[rows], w.up[e], w.up_bias, e, w.rounded[0])
        opened = gated(gate, up, activation)
        out[rows] += _product(opened, w.down[e], w.down_bias, e, w.rounded[1]) * shares[rows, places, None]
    return out
