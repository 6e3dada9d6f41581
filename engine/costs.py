"""How a model's cost per token grows with the position: from the sizes of its weights and attention."""

from __future__ import annotations

import math

from engine.kv.value import depth_scale
from engine.loading import LoadedModel
from engine.models.spec import ModelSpec


def model_depth_scale(model: LoadedModel) -> float:
    """Position at which a token costs twice what the first one does: see engine.kv.value.depth_scale."""
    spec = model.handle.spec
    share = _expert_share(spec)
    sizes = ((math.prod(info.shape), len(info.shape)) for info in model.gguf.tensors.values())
    active = sum(size * share if dimensions == 3 else size for size, dimensions in sizes)
    return depth_scale(int(active), sum(layer.attention.heads * layer.attention.head_dim_k for layer in spec.layers))


def _expert_share(spec: ModelSpec) -> float:
    """The part of the expert tensors (those with three dimensions) that one token passes through."""
    chosen = [layer.ffn.experts for layer in spec.layers if layer.ffn.experts]
    return max((experts.used / experts.count for experts in chosen), default=1.0)
