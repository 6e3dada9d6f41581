from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from kernels.experts.cpu import ExpertWeights, experts
from kernels.experts.reference import ExpertTensors
from kernels.experts.reference import experts as reference
from kernels.gated.cpu import gated
from kernels.linear.cpu import linear
from kernels.native_program import NativeProgram
from kernels.program import Activation, Experts, Linear, Program, Route, TensorRef
from kernels.single import How, Weight, rows_batch
from tests.kernels.weights import QUANTISED, SOME, TYPES, make, rounded_over, whole_columns

COUNT = 7


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def chosen(rows: int, used: int, count: int = COUNT, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Expert 1 is rare and the last one never chosen."""
    rng = np.random.default_rng(seed)
    odds = np.array([1.0, 0.05, *[1.0] * (count - 3), 0.0])
    picks = [np.sort(rng.choice(count, used, False, odds / odds.sum())) for _ in range(rows)]
    return np.array(picks), rng.uniform(0.1, 1, (rows, used)).astype(np.float32)


def build(
    name: str, down: str, channels: int, width: int, out: int, biases: bool
) -> tuple[ExpertWeights, ExpertTensors]:
    def several(kind: str, rows: int, cols: int, seed: int) -> tuple[list[Weight], list[torch.Tensor]]:
        made = [make(kind, rows, cols, seed + e) for e in range(COUNT)]
        return [w for w, _ in made], [torch.from_numpy(v) for _, v in made]

    gate, gates = several(name, width, channels, 10)
    up, ups = several(name, width, channels, 30)
    back, backs = several(down, out, width, 50)
    rounded = (rounded_over(name), rounded_over(down))
    if not biases:
        return ExpertWeights(gate, up, back), ExpertTensors(gates, ups, backs, rounded=rounded)
    extra = [normal(COUNT, n, seed=n) for n in (width, width + 1, out)]
    extra[1] = np.ascontiguousarray(extra[1][:, :width])
    return ExpertWeights(gate, up, back, *extra), ExpertTensors(
        gates, ups, backs, *map(torch.from_numpy, extra), rounded
    )


@pytest.mark.parametrize("name", TYPES)
def test_matches_reference(isa: str, name: str) -> None:
    channels, width = whole_columns(name, 64), whole_columns(name, 96)
    weights, tensors = build(name, name, channels, width, 37, biases=False)
    x = normal(23, channels) * 0.1
    ids, shares = chosen(23, 3)
    wanted = reference(torch.from_numpy(x), torch.from_numpy(ids), torch.from_numpy(shares), tensors).numpy()
    got = experts(x, ids, shares, weights, how=How(2, isa))
    # Rounding the hidden activations to int8 may fall either way where a value lies between two steps.
    assert np.abs(got - wanted).max() <= (4e-3 if name in QUANTISED else 1e-5) * np.abs(wanted).max()


@pytest.mark.parametrize("activation", ["silu", "gelu_tanh", "swiglu_clamped"])
@pytest.mark.parametrize(("name", "down"), [("MXFP4", "MXFP4"), ("F16", "Q6_K"), ("Q4_K", "F32"), ("Q4_1", "IQ2_XS")])
def test_biases_activations_and_mixed_types(isa: str, name: str, down: str, activation: Activation) -> None:
    channels, width = whole_columns(name, 96), whole_columns(down, 160)
    weights, tensors = build(name, down, channels, width, 48, biases=True)
    x, before = normal(9, channels) * 0.1, normal(9, 48, seed=5)
    ids, shares = chosen(9, 2)
    inputs = torch.from_numpy(x), torch.from_numpy(ids), torch.from_numpy(shares)
    wanted = before + 0.5 * reference(*inputs, tensors, activation).numpy()
    got = experts(x, ids, shares, weights, activation, before, 0.5, How(1, isa))
    exact = 1e-3 if activation == "gelu_tanh" else 1e-5  # GELU goes in 16-bit steps
    assert np.abs(got - wanted).max() <= (4e-3 if down in QUANTISED else exact) * np.abs(wanted).max()


def test_experts_and_matrices_that_round_their_source_differently(isa: str) -> None:
    """Against the products of each expert one by one."""
    kinds = (("Q4_K", "Q8_0"), ("Q5_1", "Q3_K", "F32"), ("Q6_K", "NVFP4"))
    made = [
        [make(kind[e % len(kind)], *shape, 90 + 10 * part + e)[0] for e in range(COUNT)]
        for part, (kind, shape) in enumerate(zip(kinds, ((256, 512), (256, 512), (37, 256)), strict=True))
    ]
    weights, x = ExpertWeights(*made), normal(23, 512) * 0.1
    ids, shares = chosen(23, 3)
    wanted = np.zeros((23, 37), np.float32)
    for row, used, share in zip(range(23), ids, shares, strict=True):
        for e, part in zip(used, share, strict=True):
            gate, up = (linear(x[row : row + 1], kind[e], how=How(isa=isa)) for kind in (weights.gate, weights.up))
            opened = gated(gate, up, "silu", How(isa=isa))
            wanted[row] += part * linear(opened, weights.down[e], how=How(isa=isa))[0]
    for threads in (1, 2):
        got = experts(x, ids, shares, weights, how=How(threads, isa))
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    alone = [experts(x[i : i + 1], ids[i : i + 1], shares[i : i + 1], weights, how=How(1, isa)) for i in range(23)]
    assert np.array_equal(got, np.concatenate(alone))


@pytest.mark.parametrize("name", ["NVFP4", "F32"])
def test_each_expert_has_factors_of_its_own(isa: str, name: str) -> None:
    """Of each product, not of the sum: behind the activation a factor of gate or up is no factor any more."""
    weights, tensors = build(name, name, 64, 128, 48, biases=True)
    factors = np.random.default_rng(8).uniform(0.2, 3, (3, COUNT)).astype(np.float32)
    weights, tensors = replace(weights, factors=factors), replace(tensors, factors=torch.from_numpy(factors))
    x = normal(13, 64) * 0.1
    ids, shares = chosen(13, 2)
    wanted = reference(torch.from_numpy(x), torch.from_numpy(ids), torch.from_numpy(shares), tensors).numpy()
    got = experts(x, ids, shares, weights, how=How(2, isa))
    assert np.abs(got - wanted).max() <= (4e-3 if name in QUANTISED else 1e-5) * np.abs(wanted).max()
    one = [experts(x[i : i + 1], ids[i : i + 1], shares[i : i + 1], weights, how=How(1, isa)) for i in range(len(x))]
    assert np.array_equal(got, np.concatenate(one))


@pytest.mark.parametrize("name", SOME)
def test_a_row_does_not_depend_on_its_batch(isa: str, name: str) -> None:
    channels, width = whole_columns(name, 96), whole_columns(name, 160)
    weights, _ = build(name, name, channels, width, 50, biases=False)
    x = normal(61, channels)
    ids, shares = chosen(61, 3)
    together = experts(x, ids, shares, weights, how=How(1, isa))
    assert np.isfinite(together).all()
    for size, threads in ((1, 2), (2, 1), (9, 2), (32, 3), (61, 2)):
        parts = [
            experts(x[i : i + size], ids[i : i + size], shares[i : i + size], weights, how=How(threads, isa))
            for i in range(0, len(x), size)
        ]
        assert np.array_equal(together, np.concatenate(parts)), size


def test_pairs_of_many_rows_are_computed_in_slices(isa: str) -> None:
    """12 MB at a time: here three slices of whole experts, added up as if there were one."""
    weights, _ = build("Q8_0", "Q8_0", 2048, 32, 40, biases=False)
    x, before = normal(2000, 2048), normal(2000, 40, seed=5)
    ids, shares = chosen(2000, 3)
    ids[:, 0] = 0  # an expert that is a slice of its own
    ids[ids[:, 1] == 0, 1] = 2
    together = experts(x, ids, shares, weights, "silu", before, 0.5, How(2, isa))
    for begin, end in ((0, 64), (990, 1023), (1999, 2000)):
        rows = slice(begin, end)
        alone = experts(x[rows], ids[rows], shares[rows], weights, "silu", before[rows], 0.5, How(1, isa))
        assert np.array_equal(together[rows], alone)


def test_a_layer_behind_its_router_and_a_second_one(isa: str) -> None:
    """Two layers in one program: sizes come from the routing of each, inside one step."""
    weights, _ = build("Q8_0", "Q8_0", 64, 96, 64, biases=False)
    routers = [Weight.f32(normal(COUNT, 64, seed=s)) for s in (70, 71)]
    tensors = [*weights.gate, *weights.up, *weights.down, *routers]
    ops = []
    for layer in range(2):
        ops += [
            Linear(1, 0, 3 * COUNT + layer),
            Route(2, 1, COUNT, 2, normalise=True),
            Experts(3, 0, 2, COUNT, 2, 0, COUNT, 2 * COUNT, accumulate=False),
            Linear(0, 3, 3 * COUNT + 2, accumulate=True),
        ]
    identity = Weight.f32(np.eye(64, dtype=np.float32))
    refs: tuple[TensorRef, ...] = tuple(w.ref() for w in [*tensors, identity])
    program = Program((64, COUNT, 4, 64), refs, (), 64, (), tuple(ops), 1, 64)
    x = normal(40, 64)

    def run(rows: np.ndarray, threads: int) -> np.ndarray:
        native = NativeProgram(program, threads, isa)
        return native.run_on(rows_batch(len(rows)), {0: rows}, [0], poison=True)[0]

    together = run(x, 2)
    assert np.isfinite(together).all()
    assert not np.array_equal(together, x)
    single = np.concatenate([run(x[i : i + 1].copy(), 1) for i in range(len(x))])
    assert np.array_equal(together, single)


def test_wrong_experts_are_refused_by_name() -> None:
    weights, _ = build("Q4_0", "Q4_0", 64, 96, 32, biases=False)
    tensors = tuple(w.ref() for w in [*weights.gate, *weights.up, *weights.down])
    op = Experts(2, 0, 1, COUNT, 2, 0, COUNT, 2 * COUNT)
    program = Program((64, 4, 32), tensors, (), 64, (), (op,), 1, 64)
    NativeProgram(program, 1)
    cases = {
        "tensor 21 does not exist": replace(op, down=15),
        "buffer 1 is 4 wide, not 6": replace(op, used=3),
        "tensor 7 has 96 rows, not 32|tensor 14 has": replace(op, gate=2 * COUNT),
        "8 of 7 experts": replace(op, used=8),
        "tensor 0 must hold 21 F32 values": replace(op, factors=0),
    }
    for text, wrong in cases.items():
        widths = (64, 16, 32) if wrong.used == 8 else program.widths
        with pytest.raises(ValueError, match=text):
            NativeProgram(replace(program, widths=widths, instructions=(wrong,)), 1)
