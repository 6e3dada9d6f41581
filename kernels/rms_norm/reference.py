"""The truth for RMS normalisation."""

from __future__ import annotations

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Over the last axis: x / sqrt(mean(x^2) + eps) * weight, float32."""
    scale = torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + eps)
    return x * scale.float() * weight
