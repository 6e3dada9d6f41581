"""The truth for the matrix product, and the rounding of activations that quantised weights imply."""

from __future__ import annotations

import torch

BLOCK, SUPERBLOCK = 32, 256


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, scale: float = 1.0) -> torch.Tensor:
    """scale * (x @ weight.T + bias), accumulated in float64; x [T, cols], weight [rows, cols] float32."""
    product = x.double() @ weight.double().T
    if bias is not None:
        product = product + bias.double()
    return (product * scale).float()


def round_activations(x: torch.Tensor, channels: int = BLOCK) -> torch.Tensor:
    """x as the native kernels see it beside quantised weights: int8 with one float32 scale per BLOCK channels, or per
    SUPERBLOCK beside types whose weights come in superblocks of so many."""
    blocks = x.reshape(*x.shape[:-1], -1, channels)
    largest = blocks.abs().amax(-1, keepdim=True)
    scale = largest / 127
    inverse = torch.where(largest > 1e-35, 127 / largest, torch.zeros_like(largest))
    return (torch.round(blocks * inverse) * scale).reshape(x.shape)
