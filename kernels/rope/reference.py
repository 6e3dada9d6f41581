"""The truth for rotary embeddings: angles in float64, rotation in float32."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernels.program import ROPE_NORM, RopeTable


def rope(x: torch.Tensor, positions: Sequence[int], table: RopeTable) -> torch.Tensor:
    """x [T, heads, head_dim] float32; the first `table.dims` channels of each head rotate, the rest stays."""
    angles = torch.tensor(positions, dtype=torch.float64)[:, None] * torch.tensor(table.inv_freq, dtype=torch.float64)
    cosine = (angles.cos() * table.magnitude).float()[:, None, :]
    sine = (angles.sin() * table.magnitude).float()[:, None, :]
    turned, kept = x[..., : table.dims], x[..., table.dims :]
    if table.kind == ROPE_NORM:
        a, b = turned[..., 0::2], turned[..., 1::2]
        pairs = torch.stack((a * cosine - b * sine, a * sine + b * cosine), -1).flatten(-2)
    else:
        a, b = turned.chunk(2, -1)
        pairs = torch.cat((a * cosine - b * sine, a * sine + b * cosine), -1)
    return torch.cat((pairs, kept), -1)
