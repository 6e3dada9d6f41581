"""The truth for gated activations."""

from __future__ import annotations

import torch

from kernels.program import Activation


def gated(gate: torch.Tensor, up: torch.Tensor, activation: Activation = "silu") -> torch.Tensor:
    """activation(gate) * up; gelu_tanh is the tanh approximation of GELU."""
    functional = torch.nn.functional
    if activation == "silu":
        return functional.silu(gate) * up
    return functional.gelu(gate, approximate="tanh") * up
