"""The truth for the choice of experts."""

from __future__ import annotations

import torch

from kernels.program import Gating, Route

_SMALLEST_SUM = 6.103515625e-5


def _chances(logits: torch.Tensor, gating: Gating) -> torch.Tensor:
    if gating == "softmax":
        return logits.softmax(-1)
    if gating == "sigmoid":
        return logits.sigmoid()
    return torch.nn.functional.softplus(logits).sqrt() if gating == "sqrt_softplus" else logits


def _other_groups(scores: torch.Tensor, op: Route) -> torch.Tensor:
    """Mask of the experts outside the best groups, a group counting by the sum of its two best."""
    groups = scores.reshape(len(scores), op.groups, -1)
    worth = groups.topk(min(2, groups.shape[-1]), -1).values.sum(-1)
    kept = worth.topk(op.groups_used, -1).indices
    mask = torch.ones_like(worth, dtype=torch.bool).scatter(-1, kept, False)
    return mask[..., None].expand_as(groups).reshape(scores.shape)


def route(logits: torch.Tensor, op: Route, bias: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids ascending, weights), both [T, op.used], in float64."""
    chances = _chances(logits.double(), op.gating)
    scores = chances if bias is None else chances + bias.double()
    if op.groups > 1:
        scores = scores.masked_fill(_other_groups(scores, op), float("-inf"))
    ids = scores.topk(op.used, -1).indices.sort(-1).values
    weights = chances.gather(-1, ids)
    if op.gating == "softmax_chosen":
        weights = weights.softmax(-1)
    if op.normalise:
        weights = weights / weights.sum(-1, keepdim=True).clamp(min=_SMALLEST_SUM)
    return ids, weights * op.scale
