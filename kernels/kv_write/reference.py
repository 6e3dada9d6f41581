"""The truth for stored K and V: what reading a plane gives back."""

from __future__ import annotations

import torch

_PLAIN = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def stored(values: torch.Tensor, kv_type: str) -> torch.Tensor:
    """float32 values after a round trip through the element type; q8 rounds per 32 channels of the last axis."""
    if kv_type in _PLAIN:
        return values.to(_PLAIN[kv_type]).float()
    blocks = values.reshape(*values.shape[:-1], -1, 32)
    scale = (blocks.abs().amax(-1, keepdim=True) / 127).half().float()
    inverse = torch.where(scale > 0, 1 / scale, torch.zeros_like(scale))
    return (torch.round(blocks * inverse).clamp(-127, 127) * scale).reshape(values.shape)


def read_plane(
    page: torch.Tensor, offset: int, heads: int, page_tokens: int, head_dim: int, kv_type: str
) -> torch.Tensor:
    """K or V of one layer from a page's bytes (uint8): float32 [heads, page_tokens, head_dim]."""
    count = heads * page_tokens * head_dim
    shape = (heads, page_tokens, head_dim)
    if kv_type in _PLAIN:
        dtype = _PLAIN[kv_type]
        return page[offset : offset + count * dtype.itemsize].view(dtype).reshape(shape).float()
    scales_at = offset + -(-count // 64) * 64
    data = page[offset : offset + count].view(torch.int8).reshape(*shape[:2], -1, 32).float()
    scales = page[scales_at : scales_at + count // 16].view(torch.float16).reshape(*shape[:2], -1, 1).float()
    return (data * scales).reshape(shape)
