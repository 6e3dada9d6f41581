"""The truth for embedding rows."""

from __future__ import annotations

import torch


def embed(tokens: torch.Tensor, weight: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """tokens int [T], weight float32 [vocabulary, channels] -> [T, channels]."""
    return weight[tokens.long()] * scale
