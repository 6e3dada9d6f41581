from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.head.cpu import head
from kernels.head.reference import head as reference
from kernels.single import How
from tests.kernels.weights import make


@pytest.mark.parametrize(("scale", "cap"), [(1.0, 0.0), (0.5, 4.0)])
def test_head_of_chosen_rows(isa: str, scale: float, cap: float) -> None:
    weight, values = make("F16", 131, 48)
    rng = np.random.default_rng(4)
    x, norm = rng.standard_normal((12, 48)).astype(np.float32), rng.standard_normal(48).astype(np.float32)
    rows = np.array([11, 0, 5, 5], np.int32)
    hidden, logits = head(x, rows, norm, weight, 1e-5, scale, cap, How(2, isa))
    tensors = torch.from_numpy(x[rows]), torch.from_numpy(norm), torch.from_numpy(values)
    want_hidden, want_logits = reference(*tensors, 1e-5, scale, cap)
    np.testing.assert_allclose(hidden, want_hidden.numpy(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(logits, want_logits.numpy(), rtol=1e-5, atol=1e-5)


def test_no_rows_wanted(isa: str) -> None:
    weight, _ = make("Q8_0", 40, 32)
    none = np.zeros(0, np.int32)
    hidden, logits = head(np.ones((3, 32), np.float32), none, np.ones(32, np.float32), weight, 1e-5, how=How(isa=isa))
    assert hidden.shape == (0, 32)
    assert logits.shape == (0, 40)


def test_capped_logits_tell_what_is_no_number(isa: str) -> None:
    weight, _ = make("F32", 37, 48)
    x = np.random.default_rng(4).standard_normal((3, 48)).astype(np.float32)
    x[1, 7] = np.nan
    _, logits = head(x, np.arange(3, dtype=np.int32), np.ones(48, np.float32), weight, 1e-5, 1.0, 30.0, How(isa=isa))
    assert np.isnan(logits[1]).all()
    assert np.isfinite(logits[[0, 2]]).all()
