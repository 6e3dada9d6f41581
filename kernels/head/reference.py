"""The truth for the output head."""

from __future__ import annotations

import torch

from kernels.linear.reference import linear
from kernels.rms_norm.reference import rms_norm


def head(
    x: torch.Tensor, norm: torch.Tensor, weight: torch.Tensor, eps: float, scale: float = 1.0, softcap: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """(hidden [R, channels], logits [R, vocabulary]) of rows x [R, channels]."""
    hidden = rms_norm(x, norm, eps)
    logits = linear(hidden, weight, scale=scale)
    return hidden, softcap * torch.tanh(logits / softcap) if softcap > 0 else logits
