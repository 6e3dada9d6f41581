"""Formulas of the decoder in plain torch float32: rotation, attention, activations, routing of experts."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from engine.models.spec import Activation, AttentionSpec, ExpertSpec, Gating, RopeKind, RopeSpec

_QUERY_STRIP = 256  # rows of queries whose scores are held at once
_SMALLEST_SUM = 6.103515625e-5  # the smallest normal float16: what sums of weights are bounded by
_SWIGLU_LIMIT, _SWIGLU_SLOPE = 7.0, 1.702


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Over the last axis."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rotate(x: Tensor, positions: Tensor, rope: RopeSpec) -> Tensor:
    """Rotates the first `rope.dims` channels of x [rows, heads, channels]; angles in float64."""
    if rope.kind is RopeKind.NONE:
        return x
    angles = positions[:, None] * torch.tensor(rope.inv_freq, dtype=torch.float64)
    cos = (angles.cos() * rope.magnitude).float()[:, None]
    sin = (angles.sin() * rope.magnitude).float()[:, None]
    turned, rest = x[..., : rope.dims], x[..., rope.dims :]
    neox = rope.kind is RopeKind.NEOX
    half = rope.dims // 2
    shape = (*turned.shape[:-1], 2, half) if neox else (*turned.shape[:-1], half, 2)
    pairs = turned.reshape(shape) if neox else turned.reshape(shape).transpose(-1, -2)
    a, b = pairs.unbind(-2)
    rotated = torch.stack([a * cos - b * sin, a * sin + b * cos], -2)
    return torch.cat([(rotated if neox else rotated.transpose(-1, -2)).flatten(-2), rest], -1)


def attend(q: Tensor, keys: Tensor, values: Tensor, start: int, a: AttentionSpec, sinks: Tensor | None) -> Tensor:
    """Causal grouped-query attention: [rows, heads, dv].

    q [rows, heads, dk] at positions from `start`; keys [kv_heads, n, dk], values [kv_heads, n, dv]; sinks [heads].
    """
    strips = [
        _attend_strip(strip, keys, values, start + i * _QUERY_STRIP, a, sinks)
        for i, strip in enumerate(torch.split(q, _QUERY_STRIP))
    ]
    return torch.cat(strips)


def _attend_strip(
    q: Tensor, keys: Tensor, values: Tensor, start: int, a: AttentionSpec, sinks: Tensor | None
) -> Tensor:
    rows, kv_heads = len(q), len(keys)
    grouped = q.reshape(rows, kv_heads, -1, q.shape[-1]).permute(1, 2, 0, 3)  # [kv_heads, group, rows, dk]
    scores: Tensor = grouped @ keys[:, None].transpose(-1, -2) * a.scale
    if a.softcap:
        scores = torch.tanh(scores / a.softcap) * a.softcap
    distance = start + torch.arange(rows)[:, None] - torch.arange(keys.shape[1])
    hidden = (distance < 0) | (distance >= a.window) if a.kind == "window" else distance < 0
    shares = _shares(scores.masked_fill(hidden, -torch.inf), sinks)
    mixed: Tensor = shares @ values[:, None]
    return mixed.permute(2, 0, 1, 3).flatten(1, 2)


def _shares(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Softmax over keys; a sink is one more score that takes its share of nothing."""
    if sinks is None:
        return scores.softmax(-1)
    extra = sinks.view(*scores.shape[:2], 1, 1).expand(*scores.shape[:3], 1)
    return torch.cat([scores, extra], -1).softmax(-1)[..., :-1]


def activate(gate: Tensor, up: Tensor, activation: Activation) -> Tensor:
    if activation == "silu":
        return functional.silu(gate) * up
    if activation == "gelu_tanh":
        return _gelu(gate) * up
    gate, up = gate.clamp(max=_SWIGLU_LIMIT), up.clamp(-_SWIGLU_LIMIT, _SWIGLU_LIMIT)
    return gate * torch.sigmoid(_SWIGLU_SLOPE * gate) * (up + 1)


def _gelu(x: Tensor) -> Tensor:
    """The tanh form in steps of 16-bit floats between -10 and 10, as ggml looks it up; beyond, x or 0."""
    value = functional.gelu(x.half().float(), approximate="tanh").half().float()
    return torch.where(x.abs() < 10, value, x.clamp(min=0))


def route(logits: Tensor, choice_bias: Tensor | None, experts: ExpertSpec) -> tuple[Tensor, Tensor]:
    """Chosen experts, ascending, and their weights: [rows, used] each, of router logits [rows, count].

    The order of operations is that of the GGUF families (llama.cpp): the bias only chooses, weights are unbiased.
    """
    probabilities = _opened(logits, experts.gating)
    choice = probabilities if choice_bias is None else probabilities + choice_bias
    if experts.groups > 1:
        choice = _best_groups(choice, experts)
    chosen = choice.topk(experts.used, -1).indices.sort(-1).values
    weights = probabilities.gather(-1, chosen)
    if experts.gating == "softmax_chosen":
        weights = weights.softmax(-1)
    if experts.normalise:
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=_SMALLEST_SUM)
    return chosen, weights * experts.scale


def _opened(logits: Tensor, gating: Gating) -> Tensor:
    if gating == "softmax":
        return logits.softmax(-1)
    if gating == "sigmoid":
        return logits.sigmoid()
    return functional.softplus(logits).sqrt() if gating == "sqrt_softplus" else logits


def _best_groups(choice: Tensor, experts: ExpertSpec) -> Tensor:
    """Scores of experts outside the best groups become -inf; a group counts by the sum of its two best."""
    groups = choice.view(len(choice), experts.groups, -1)
    scores = groups.topk(min(2, groups.shape[-1]), -1).values.sum(-1)
    kept = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, scores.topk(experts.groups_used, -1).indices, True)
    return groups.masked_fill(~kept[..., None], -torch.inf).flatten(1)
