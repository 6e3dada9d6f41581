"""Native latent attention."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.program import KvLayerLayout, MlaAttention, StepBatch
from kernels.single import Floats, How, Weight, run


def mla_attention(
    q: Floats,
    layer: KvLayerLayout,
    page_tokens: int,
    batch: StepBatch,
    k_b: Sequence[Weight],
    v_b: Sequence[Weight],
    scale: float,
    k_transposed: bool = False,
    how: How | None = None,
) -> Floats:
    """q [T, heads * (nope + rope)] over the latent rows in the batch's pages -> [T, heads * value_dim].

    k_b per head [nope, kv_lora], or [kv_lora, nope] if `k_transposed`; v_b [value_dim, kv_lora].
    """
    heads, value_dim, kv_lora = len(k_b), v_b[0].rows, v_b[0].cols
    nope = k_b[0].cols if k_transposed else k_b[0].rows
    op = MlaAttention(1, 0, 0, heads, scale, kv_lora, nope, value_dim, 0, heads, k_transposed)
    widths = [q.shape[1], heads * value_dim]
    return run(op, {0: q}, 1, widths, [*k_b, *v_b], [layer], page_tokens=page_tokens, batch=batch, how=how)
