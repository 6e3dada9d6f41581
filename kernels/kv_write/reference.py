"""The truth for stored K and V: what reading a plane gives back."""

from __future__ import annotations

import math

import torch

_PLAIN = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def stored(values: torch.Tensor, kv_type: str) -> torch.Tensor:
    """float32 values after a round trip through the element type; q8 rounds per 32 channels of the last axis,
    q4 too, of the rotated head."""
    if kv_type in _PLAIN:
        return values.to(_PLAIN[kv_type]).float()
    if kv_type == "q4":
        return _stored_q4(values)
    blocks = values.reshape(*values.shape[:-1], -1, 32)
    scale = (blocks.abs().amax(-1, keepdim=True) / 127).half().float()
    inverse = torch.where(scale > 0, 1 / scale, torch.zeros_like(scale))
    return (torch.round(blocks * inverse).clamp(-127, 127) * scale).reshape(values.shape)


def rotated(values: torch.Tensor) -> torch.Tensor:
    """Each run of 2^k channels times the orthogonal Hadamard matrix, 2^k the largest power of two that divides them."""
    channels = values.shape[-1]
    run = channels & -channels
    matrix = torch.ones(1, 1)
    while len(matrix) < run:
        matrix = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), matrix)
    return (values.reshape(*values.shape[:-1], -1, run) @ matrix / math.sqrt(run)).reshape(values.shape)


def _stored_q4(values: torch.Tensor) -> torch.Tensor:
    blocks = rotated(values).reshape(*values.shape[:-1], -1, 32)
    scale = (blocks.abs().amax(-1, keepdim=True) / 7.5).half().float()
    inverse = torch.where(scale > 0, 1 / scale, torch.zeros_like(scale))
    return rotated((torch.round(blocks * inverse).clamp(-8, 7) * scale).reshape(values.shape))


def read_plane(
    page: torch.Tensor, offset: int, heads: int, page_tokens: int, head_dim: int, kv_type: str
) -> torch.Tensor:
    """K or V of one layer from a page's bytes (uint8): float32 [heads, page_tokens, head_dim]."""
    count = heads * page_tokens * head_dim
    shape = (heads, page_tokens, head_dim)
    if kv_type in _PLAIN:
        dtype = _PLAIN[kv_type]
        return page[offset : offset + count * dtype.itemsize].view(dtype).reshape(shape).float()
    size = count // 2 if kv_type == "q4" else count
    scales_at = offset + -(-size // 64) * 64
    raw = page[offset : offset + size]
    scales = page[scales_at : scales_at + count // 16].view(torch.float16).reshape(*shape[:2], -1, 1).float()
    if kv_type == "q4":
        nibbles = raw.reshape(*shape[:2], -1, 16)
        return rotated(((torch.cat((nibbles & 15, nibbles >> 4), -1).float() - 8) * scales).reshape(shape))
    return (raw.view(torch.int8).reshape(*shape[:2], -1, 32).float() * scales).reshape(shape)
