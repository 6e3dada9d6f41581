"""The truth for attention: one softmax over all visible keys, in float64."""

from __future__ import annotations

import math

import torch


def visible(rows: int, keys: int, start: int, window: int) -> torch.Tensor:
    """Mask [rows, keys]: row r stands at position start + r and sees keys up to itself, `window` of them if > 0."""
    position = torch.arange(start, start + rows)[:, None]
    key = torch.arange(keys)[None, :]
    mask = key <= position
    return mask & (key > position - window) if window > 0 else mask


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    start: int,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    sinks: torch.Tensor | None = None,
    narrow: tuple[str, str] = ("", ""),
) -> torch.Tensor:
    """q [T, heads, dk], k [S, kv_heads, dk], v [S, kv_heads, dv] -> [T, heads, dv]; q row r at position start + r.

    `narrow`: how a level multiplies K and V: "bf16" rounds scaled queries and keys, or values, to bfloat16, "int8"
    rounds queries to int8 per 32 channels (values stay as stored).
    """
    q = q * scale
    if narrow[0] == "bf16":
        unit = 1.0 if softcap > 0 else math.log2(math.e)  # scores are exponents of 2
        q, k = (q * unit).bfloat16().double() / unit, k.bfloat16()
    elif narrow[0] == "int8":
        blocks = q.reshape(*q.shape[:-1], -1, 32)
        steps = blocks.abs().amax(-1, keepdim=True) / 127
        q = (torch.round(blocks / steps) * steps).reshape(q.shape)
    v = v.bfloat16() if narrow[1] == "bf16" else v
    group = q.shape[1] // k.shape[1]
    keys = k.double().repeat_interleave(group, 1)
    values = v.double().repeat_interleave(group, 1)
    scores = torch.einsum("thd,shd->hts", q.double(), keys)
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~visible(len(q), len(k), start, window), float("-inf"))
    if sinks is not None:
        scores = torch.cat((scores, sinks.double()[:, None, None].expand(-1, len(q), 1)), -1)
    weights = torch.softmax(scores, -1)[..., : len(k)]
    return torch.einsum("hts,shd->thd", weights, values).float()
