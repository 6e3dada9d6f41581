"""The truth for gated activations."""

from __future__ import annotations

import torch

from kernels.program import Activation


def gated(gate: torch.Tensor, up: torch.Tensor, activation: Activation = "silu") -> torch.Tensor:
    """activation(gate) * up; gelu_tanh is the tanh approximation of GELU."""
    functional = torch.nn.functional
    if activation == "swiglu_clamped":
        bounded = gate.clamp(max=7)
        return bounded * torch.sigmoid(1.702 * bounded) * (up.clamp(-7, 7) + 1)
    if activation == "silu":
        return functional.silu(gate) * up
    return functional.gelu(gate, approximate="tanh") * up
