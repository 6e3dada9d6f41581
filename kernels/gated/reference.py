"""The truth for gated activations."""

from __future__ import annotations

import torch

from kernels.program import Activation


def gated(gate: torch.Tensor, up: torch.Tensor, activation: Activation = "silu") -> torch.Tensor:
    """activation(gate) * up; gelu_tanh is the tanh form of GELU, in steps of 16-bit floats as in ggml's table."""
    functional = torch.nn.functional
    if activation == "swiglu_clamped":
        bounded = gate.clamp(max=7)
        return bounded * torch.sigmoid(1.702 * bounded) * (up.clamp(-7, 7) + 1)
    if activation == "silu":
        return functional.silu(gate) * up
    return _gelu_in_halves(gate) * up


def _gelu_in_halves(x: torch.Tensor) -> torch.Tensor:
    """Argument and value rounded to 16 bits between -10 and 10; beyond, x or 0."""
    value = torch.nn.functional.gelu(x.half().to(x.dtype), approximate="tanh").half().to(x.dtype)
    return torch.where(x.abs() < 10, value, x.clamp(min=0))
