from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.embed.cpu import embed
from kernels.embed.reference import embed as embed_reference
from kernels.gated.cpu import gated
from kernels.gated.reference import gated as gated_reference
from kernels.program import ROPE_NEOX, ROPE_NORM, RopeTable
from kernels.residual.cpu import add, sigmoid_gate
from kernels.residual.reference import add as add_reference
from kernels.residual.reference import sigmoid_gate as gate_reference
from kernels.rms_norm.cpu import head_norm, rms_norm
from kernels.rms_norm.reference import rms_norm as norm_reference
from kernels.rope.cpu import rope
from kernels.rope.reference import rope as rope_reference
from kernels.single import How
from tests.kernels.weights import TYPES, make, whole_columns


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("name", TYPES)
def test_embedding_rows_are_exact(isa: str, name: str) -> None:
    weight, values = make(name, 23, whole_columns(name, 96))
    tokens = np.array([0, 22, 7, 7, 3, 1, 2, 3, 4, 5, 6], np.int32)
    wanted = embed_reference(torch.from_numpy(tokens), torch.from_numpy(values), 3.5).numpy()
    np.testing.assert_allclose(embed(tokens, weight, 3.5, How(isa=isa)), wanted, rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize("width", [1, 3, 16, 17, 100, 576])
def test_rms_norm(isa: str, width: int) -> None:
    x, weight = normal(11, width) * 5, normal(width, seed=1)
    wanted = norm_reference(torch.from_numpy(x), torch.from_numpy(weight), 1e-5).numpy()
    np.testing.assert_allclose(rms_norm(x, weight, 1e-5, How(isa=isa)), wanted, rtol=1e-6, atol=1e-7)


def test_head_norm(isa: str) -> None:
    x, weight = normal(5, 3 * 20), normal(20, seed=1)
    wanted = norm_reference(torch.from_numpy(x).reshape(5, 3, 20), torch.from_numpy(weight), 1e-6)
    got = head_norm(x, weight, 3, 1e-6, How(isa=isa))
    np.testing.assert_allclose(got, wanted.reshape(5, 60).numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", [ROPE_NORM, ROPE_NEOX])
@pytest.mark.parametrize(("head_dim", "dims"), [(64, 64), (20, 12), (6, 2)])
def test_rope(isa: str, kind: int, head_dim: int, dims: int) -> None:
    frequencies = tuple(float(f) for f in 10000.0 ** (-np.arange(dims // 2) * 2 / dims))
    table = RopeTable(dims, frequencies, 1.25, kind)
    positions = [0, 1, 5, 1000, 131071]
    x = normal(len(positions), 3 * head_dim)
    wanted = rope_reference(torch.from_numpy(x).reshape(-1, 3, head_dim), positions, table)
    got = rope(x, positions, 3, table, how=How(isa=isa))
    np.testing.assert_allclose(got, wanted.reshape(len(positions), -1).numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("activation", ["silu", "gelu_tanh", "swiglu_clamped"])
def test_gated_over_the_whole_range(isa: str, activation: str) -> None:
    gate = np.concatenate([np.linspace(-100, 100, 400), np.linspace(-4, 4, 403)]).astype(np.float32)[None]
    up = normal(1, gate.shape[1])
    wanted = gated_reference(torch.from_numpy(gate).double(), torch.from_numpy(up).double(), activation).numpy()
    got = gated(gate, up, activation, How(isa=isa))
    steps = 2**-10 if activation == "gelu_tanh" else 0  # its argument may be rounded to the next 16-bit float
    np.testing.assert_allclose(got, wanted, rtol=3e-6 + steps, atol=1e-6)


@pytest.mark.parametrize("activation", ["silu", "gelu_tanh", "swiglu_clamped"])
def test_gated_tells_what_is_no_number(isa: str, activation: str) -> None:
    gate, up = normal(3, 37), normal(3, 37, seed=1)
    gate[0, 5] = up[1, 20] = gate[2, 36] = np.nan  # within vectors, and behind the last whole one
    got = gated(gate, up, activation, How(isa=isa))
    assert np.argwhere(np.isnan(got)).tolist() == [[0, 5], [1, 20], [2, 36]]


def test_rope_from_a_channel_on(isa: str) -> None:
    table = RopeTable(8, (1.0, 0.1, 0.01, 0.001), 1.0, ROPE_NEOX)
    x = normal(3, 2 * 20)
    wanted = torch.from_numpy(x.copy()).reshape(3, 2, 20)
    wanted[..., 9:17] = rope_reference(wanted[..., 9:17], [0, 3, 70], table)
    got = rope(x, [0, 3, 70], 2, table, 9, How(isa=isa))
    np.testing.assert_allclose(got, wanted.reshape(3, 40).numpy(), rtol=1e-6, atol=1e-6)


def test_head_norm_of_the_first_channels(isa: str) -> None:
    x, weight = normal(5, 3 * 20), normal(12, seed=1)
    wanted = torch.from_numpy(x.copy()).reshape(5, 3, 20)
    wanted[..., :12] = norm_reference(wanted[..., :12], torch.from_numpy(weight), 1e-6)
    got = head_norm(x, weight, 3, 1e-6, How(isa=isa))
    np.testing.assert_allclose(got, wanted.reshape(5, 60).numpy(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("width", [1, 37, 64])
def test_residual_operations(isa: str, width: int) -> None:
    x, same, src, weight = normal(9, width), normal(9, width, seed=1), normal(9, 45, seed=2), normal(45, seed=3)
    tensors = [torch.from_numpy(a) for a in (x, same, src, weight)]
    wanted = add_reference(tensors[0], tensors[1], 0.22).numpy()
    np.testing.assert_allclose(add(x, same, 0.22, How(isa=isa)), wanted, rtol=1e-6, atol=1e-6)
    wanted = gate_reference(tensors[0], tensors[2], tensors[3]).numpy()
    np.testing.assert_allclose(sigmoid_gate(x, src, weight, How(isa=isa)), wanted, rtol=3e-6, atol=1e-6)
