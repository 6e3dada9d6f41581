"""Native attention."""

from __future__ import annotations

import numpy as np

from kernels.program import Attention, KvLayerLayout, StepBatch
from kernels.single import Floats, How, Weight, run


def attention(
    q: Floats,
    layer: KvLayerLayout,
    page_tokens: int,
    batch: StepBatch,
    heads: int,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    sinks: Floats | None = None,
    how: How | None = None,
) -> Floats:
    """q [T, heads * head_dim_k] over the K and V stored in the batch's pages -> [T, heads * head_dim_v]."""
    op = Attention(1, 0, 0, heads, scale, window, softcap, None if sinks is None else 0)
    weights = [] if sinks is None else [Weight.f32(np.asarray(sinks))]
    widths = [q.shape[1], heads * layer.head_dim_v]
    return run(op, {0: q}, 1, widths, weights, [layer], page_tokens=page_tokens, batch=batch, how=how)
