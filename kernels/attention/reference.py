"""The truth for attention: one softmax over all visible keys, in float64."""

from __future__ import annotations

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
    narrow: tuple[bool, bool] = (False, False),
) -> torch.Tensor:
    """q [T, heads, dk], k [S, kv_heads, dk], v [S, kv_heads, dv] -> [T, heads, dv]; q row r at position start + r.

    `narrow`: round scaled queries and keys, and values, to bfloat16, as a level with such products does.
    """
    q = q * scale
    if narrow[0]:
        q, k = q.bfloat16(), k.bfloat16()
    v = v.bfloat16() if narrow[1] else v
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
