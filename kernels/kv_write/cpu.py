"""Native writes of K and V."""

from __future__ import annotations

from kernels.program import KvLayerLayout, KvWrite, StepBatch
from kernels.single import Floats, How, run


def kv_write(
    k: Floats, v: Floats, layer: KvLayerLayout, page_tokens: int, batch: StepBatch, how: How | None = None
) -> None:
    """Rows k [T, kv_heads * head_dim_k] and v into the pages that the batch names."""
    widths = [k.shape[1], v.shape[1]]
    op = KvWrite(0, 1, 0)
    run(op, {0: k, 1: v}, 0, widths, layers=[layer], page_tokens=page_tokens, batch=batch, how=how)
