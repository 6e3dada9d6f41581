"""The truth for latent attention: keys and values expanded, then plain attention; both forms compute this."""

from __future__ import annotations

import torch

from kernels.attention.reference import attention


def mla_attention(
    q: torch.Tensor, stored: torch.Tensor, k_b: torch.Tensor, v_b: torch.Tensor, start: int, scale: float
) -> torch.Tensor:
    """q [T, heads, nope + rope] from position `start`, stored [S, kv_lora + rope] -> [T, heads, value_dim].

    k_b [heads, nope, kv_lora], v_b [heads, value_dim, kv_lora].
    """
    lora = k_b.shape[-1]
    latent, rotated = stored[:, :lora].double(), stored[:, lora:].double()
    k_nope = torch.einsum("sc,hnc->shn", latent, k_b.double())
    keys = torch.cat([k_nope, rotated[:, None].expand(-1, len(k_b), -1)], -1)
    values = torch.einsum("sc,hvc->shv", latent, v_b.double())
    return attention(q, keys, values, start, scale)
