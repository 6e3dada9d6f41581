from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.program import Gating, Route
from kernels.route.cpu import route
from kernels.route.reference import route as reference
from kernels.single import How


def logits(rows: int, experts: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((rows, experts)) * 3).astype(np.float32)


@pytest.mark.parametrize("gating", ["softmax", "sigmoid", "softmax_chosen", "sqrt_softplus"])
@pytest.mark.parametrize(
    ("experts", "used", "groups", "groups_used"), [(5, 1, 1, 1), (60, 4, 1, 1), (64, 8, 8, 3), (21, 5, 7, 4)]
)
def test_matches_reference(isa: str, gating: Gating, experts: int, used: int, groups: int, groups_used: int) -> None:
    x = logits(33, experts)
    bias = np.random.default_rng(2).standard_normal(experts).astype(np.float32) * 0.2
    for chosen_by in (None, bias):
        for normalise in (False, True):
            op = Route(1, 0, experts, used, gating, None, groups, groups_used, normalise, 2.5)
            ids, weights = route(x, op, chosen_by, How(2, isa))
            tensor = None if chosen_by is None else torch.from_numpy(chosen_by)
            want_ids, want_weights = reference(torch.from_numpy(x), op, tensor)
            assert np.array_equal(ids, want_ids.numpy())
            np.testing.assert_allclose(weights, want_weights.numpy(), rtol=3e-6, atol=1e-6)


def test_equal_scores_go_to_the_lower_ids(isa: str) -> None:
    x = np.zeros((2, 9), np.float32)
    x[1, 7] = 1
    ids, weights = route(x, Route(1, 0, 9, 3), how=How(isa=isa))
    assert ids.tolist() == [[0, 1, 2], [0, 1, 7]]
    np.testing.assert_allclose(weights[0], 1 / 9, rtol=1e-6)


def test_extreme_logits_stay_finite_and_distinct(isa: str) -> None:
    x = np.array([[-1e30, 1e30, 0, 5], [np.nan, np.nan, np.nan, np.nan]], np.float32)
    for gating in ("softmax", "sigmoid", "sqrt_softplus"):
        ids, weights = route(x, Route(1, 0, 4, 2, gating, normalise=True), how=How(isa=isa))
        assert 1 in ids[0]
        assert np.isfinite(weights[0]).all()
        assert len(set(ids[1].tolist())) == 2
