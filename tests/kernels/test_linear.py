from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.gguf.dequantise import dequantise
from kernels.linear.cpu import linear
from kernels.linear.reference import linear as reference
from kernels.linear.reference import round_activations
from kernels.native_program import NativeProgram, available_isas
from kernels.program import Linear, Program
from kernels.single import How, Weight, rows_batch
from tests.kernels.weights import FLOATS, QUANTISED, SOME, TYPES, make, rounded_over, whole_columns


def activations(rows: int, cols: int, seed: int = 1) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((rows, cols)).astype(np.float32)
    x[:, ::7] *= 12
    return x


def seen_by(name: str, x: np.ndarray) -> torch.Tensor:
    """x as products with this type see it."""
    over = rounded_over(name)
    return round_activations(torch.from_numpy(x), over) if over else torch.from_numpy(x)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    ("tokens", "rows", "cols"), [(1, 16, 32), (3, 37, 160), (8, 64, 96), (21, 50, 576), (9, 1, 32)]
)
def test_matches_reference(isa: str, name: str, tokens: int, rows: int, cols: int) -> None:
    cols = whole_columns(name, cols)
    weight, values = make(name, rows, cols)
    x = activations(tokens, cols)
    wanted = reference(seen_by(name, x), torch.from_numpy(values)).numpy()
    got = linear(x, weight, how=How(isa=isa))
    assert np.abs(got - wanted).max() <= 2e-6 * np.abs(wanted).max() * cols**0.5


@pytest.mark.parametrize("cols", [1, 3, 17, 45])
@pytest.mark.parametrize("name", FLOATS)
def test_float_rows_of_any_width(isa: str, name: str, cols: int) -> None:
    weight, values = make(name, 19, cols)
    x = activations(6, cols)
    wanted = reference(torch.from_numpy(x), torch.from_numpy(values)).numpy()
    np.testing.assert_allclose(linear(x, weight, how=How(isa=isa)), wanted, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["F32", "Q4_1", "Q5_K"])
def test_bias_scale_and_accumulation(isa: str, name: str) -> None:
    cols = whole_columns(name, 64)
    weight, values = make(name, 33, cols)
    x, bias, before = activations(5, cols), activations(1, 33)[0], activations(5, 33, 2)
    wanted = before + reference(seen_by(name, x), torch.from_numpy(values), torch.from_numpy(bias), 0.25).numpy()
    got = linear(x, weight, bias, before, 0.25, How(isa=isa))
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", TYPES)
def test_a_row_does_not_depend_on_its_batch(isa: str, name: str) -> None:
    cols = whole_columns(name, 352)
    weight, _ = make(name, 45, cols)
    x = activations(43, cols)
    together = linear(x, weight, how=How(isa=isa))
    alone = np.concatenate([linear(x[i : i + 1], weight, how=How(isa=isa)) for i in range(len(x))])
    assert np.array_equal(together, alone)
    for size in (2, 5, 8, 13, 24) if name in SOME else (3, 7):
        parts = [linear(x[i : i + size], weight, how=How(threads=2, isa=isa)) for i in range(0, len(x), size)]
        assert np.array_equal(together, np.concatenate(parts)), size


def largest_in_16_bits(cols: int) -> np.ndarray:
    """Activations that are rounded to up to 127, 16 neighbours to 1023 together."""
    steps = np.full((cols // 256, 256), 64, np.float32)
    steps[:, ::16] -= 1
    steps[:, :16] = [127] + [60] * 11 + [59] * 4
    return steps.reshape(-1) / 127


PACKED = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "Q1_0", "Q2_0")


@pytest.mark.parametrize("name", PACKED)
def test_every_channel_of_packed_types(isa: str, name: str) -> None:
    """Each index, sign and scale meets its channel: one activation at a time, in a batch and alone."""
    weight, values = make(name, 67, 512)
    x = np.eye(512, dtype=np.float32)
    together = linear(x, weight, how=How(isa=isa))
    np.testing.assert_allclose(together, values.T, rtol=1e-6)
    for i in (*range(0, 512, 37), 255, 256, 511):
        assert np.array_equal(linear(x[i : i + 1], weight, how=How(isa=isa))[0], together[i]), i


@pytest.mark.parametrize("name", [name for name in PACKED if rounded_over(name) == 256])
def test_packed_superblocks_have_the_same_bits_at_every_vector_level(name: str) -> None:
    weight, _ = make(name, 37, 1024)
    x = activations(11, 1024)
    levels = [isa for isa in available_isas() if isa.startswith("avx")]
    every = [linear(x[:tokens], weight, how=How(isa=isa)) for isa in levels for tokens in (1, 2, 11)]
    assert all(np.array_equal(got, every[-1][: len(got)]) for got in every)


@pytest.mark.parametrize("code", [0, 255])
@pytest.mark.parametrize("name", [name for name in PACKED if name.startswith("IQ")])
def test_largest_sums_of_codebooks(isa: str, name: str, code: int) -> None:
    """Codes, signs and scales all as large as can be, against the largest activations."""
    weight, _ = make(name, 16, 512)
    block = len(weight.data.view(np.uint8).reshape(-1)) // 32
    raw = weight.data.view(np.uint8).reshape(-1, block)
    keep = raw[:, :2].copy()
    raw[:] = code
    if name == "IQ1_M":
        raw[:, 49:57:2] = raw[:, 49:57:2] & 15 | np.array([0, 0, 0, 0x20], np.uint8)
    else:
        raw[:, :2] = keep
    x = np.where(np.random.default_rng(3).random((9, 512)) < 0.5, -1, 1).astype(np.float32)
    x[0], x[1] = 1, -1
    together = linear(x, weight, how=How(isa=isa))
    assert np.array_equal(together, np.concatenate([linear(x[i : i + 1], weight, how=How(isa=isa)) for i in range(9)]))
    values = dequantise(weight.data.reshape(16, -1), weight.ggml_type, 512)
    wanted = reference(seen_by(name, x), torch.from_numpy(values)).numpy()
    np.testing.assert_allclose(together, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("code", [0, 255])
@pytest.mark.parametrize(
    ("name", "scale_at", "block"),
    [
        ("Q2_K", (80, 81, 82, 83), 84),
        ("Q3_K", (108, 109), 110),
        ("Q4_K", (0, 1, 2, 3), 144),
        ("Q6_K", (208, 209), 210),
        ("Q8_0", (0, 1), 34),
        ("IQ2_XXS", (0, 1), 66),
        ("IQ2_XS", (0, 1), 74),
        ("IQ2_S", (0, 1), 82),
        ("IQ3_XXS", (0, 1), 98),
        ("IQ3_S", (0, 1), 110),
        ("IQ1_S", (0, 1), 50),
        ("IQ1_M", (49, 51, 53, 55), 56),  # in their high halves
        ("TQ1_0", (52, 53), 54),
        ("TQ2_0", (64, 65), 66),
        ("Q4_0", (0, 1), 18),
        ("Q4_1", (0, 1, 2, 3), 20),
        ("Q5_0", (0, 1), 22),
        ("Q5_1", (0, 1, 2, 3), 24),
        ("Q5_K", (0, 1, 2, 3), 176),
        ("IQ4_NL", (0, 1), 18),
        ("MXFP4", (0,), 17),
        ("NVFP4", (0, 1, 2, 3), 36),
    ],
)
def test_largest_codes_with_largest_activations(
    isa: str, name: str, scale_at: tuple[int, ...], block: int, code: int
) -> None:
    """Sums that are kept in 16 bits do not overflow: of one token, and of a batch that is nearly too large for them."""
    weight, _ = make(name, 33, 768)
    raw = weight.data.view(np.uint8).reshape(-1, block)
    raw[:, [i for i in range(block) if i not in scale_at]] = code
    if name == "Q6_K":
        raw[:, 192:208] = 128
    x = np.where(np.random.default_rng(3).random((32, 768)) < 0.5, -1, 1).astype(np.float32)
    x[[0, 8]] = 1  # of tokens 8 to 15 some exceed 16 bits, of 16 to 23 none, of 24 to 31 only the first
    x[[1, 9]] = -1
    x[16:] = largest_in_16_bits(768) * np.array([-1, 1] * 8, np.float32)[:, None]
    x[24] = 1
    together = linear(x, weight, how=How(isa=isa))
    alone = np.concatenate([linear(x[i : i + 1], weight, how=How(isa=isa)) for i in range(len(x))])
    assert np.array_equal(together, alone)
    wanted = reference(
        seen_by(name, x), torch.from_numpy(dequantise(weight.data.reshape(33, -1), weight.ggml_type, 768))
    ).numpy()
    np.testing.assert_allclose(alone, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("name", "cols"),
    [
        ("Q4_K", 4096),
        ("Q4_K", 12288),
        ("Q6_K", 12288),
        ("Q8_0", 12320),
        ("Q5_0", 4128),
        ("MXFP4", 2080),
        ("NVFP4", 4160),
    ],
)
def test_rows_longer_than_what_is_asked_for_ahead(isa: str, name: str, cols: int) -> None:
    weight, values = make(name, 37, cols)
    x = activations(9, cols)
    together = linear(x, weight, how=How(isa=isa))
    alone = np.concatenate([linear(x[i : i + 1], weight, how=How(threads=2, isa=isa)) for i in range(len(x))])
    assert np.array_equal(together, alone)
    wanted = reference(seen_by(name, x), torch.from_numpy(values)).numpy()
    assert np.abs(alone - wanted).max() <= 2e-6 * np.abs(wanted).max() * cols**0.5


@pytest.mark.parametrize("threads", [1, 2])
def test_neighbours_that_round_their_source_differently(isa: str, threads: int) -> None:
    """Each product is that of its weight alone, also once the source has changed."""
    names = ("Q4_K", "Q5_0", "Q6_K", "NVFP4", "F32")
    weights = [make(name, 35, 512, seed)[0] for seed, name in enumerate(names)]
    weights.append(Weight.f32(activations(512, 35, 9)))
    products = [Linear(1 + i, 0, i) for i in range(5)]
    ops = (*products, Linear(0, 1, 5, accumulate=True), *(replace(op, out=op.out + 5) for op in reversed(products)))
    widths = (512, *[35] * 10)
    program = Program(widths, tuple(w.ref() for w in weights), (), 64, (), ops, 1, 512)
    native = NativeProgram(program, threads, isa)
    for tokens in (1, 11, 8):
        x = activations(tokens, 512)
        got = native.run_on(rows_batch(tokens), {0: x.copy()}, range(11), poison=True)
        for i, weight in enumerate(weights[:5]):
            assert np.array_equal(got[1 + i], linear(x, weight, how=How(isa=isa))), (tokens, names[i])
            assert np.array_equal(got[6 + i], linear(got[0], weight, how=How(isa=isa))), (tokens, names[i])


@pytest.mark.parametrize("name", QUANTISED)
def test_zero_and_extreme_activations(isa: str, name: str) -> None:
    cols = whole_columns(name, 64)
    weight, values = make(name, 32, cols)
    x = np.zeros((4, cols), np.float32)
    x[1] = 1e30
    x[2, 5] = -1e-30
    x[3, 6] = 1e-42  # too small to scale: counts as zero
    got = linear(x, weight, how=How(isa=isa))
    assert np.array_equal(got[0], np.zeros(32, np.float32))
    assert np.isfinite(got).all()
    rounding = 1e-36 * np.abs(values).max()  # where scaled code and minimum cancel
    np.testing.assert_allclose(got[2], -1e-30 * values[:, 5], rtol=1e-5, atol=rounding)


@pytest.mark.parametrize("name", QUANTISED)
def test_an_activation_that_is_no_number_is_told_by_every_product_of_its_row(isa: str, name: str) -> None:
    """Bytes can't say it: the row's scale does. Other rows of the group are what they are without it."""
    cols = whole_columns(name, 512)
    weight, _ = make(name, 37, cols)
    x = activations(19, cols)
    clean, sick = linear(x, weight, how=How(isa=isa)), [2, 17]  # in a group of 8, in one of 3
    for value in (np.nan, np.inf, -np.inf, np.uint32(0x7FFFFFFF).view(np.float32)):
        y = x.copy()
        y[2, 5] = y[17, cols - 1] = value
        got = linear(y, weight, how=How(isa=isa))
        assert np.isnan(got[sick]).all(), value
        assert np.array_equal(np.delete(got, sick, 0), np.delete(clean, sick, 0))
        assert all(np.isnan(linear(y[i : i + 1], weight, how=How(isa=isa))).all() for i in sick)


def test_largest_sums_of_a_superblock_are_exact(isa: str) -> None:
    """Codes, scales and activations all as large as can be: many tokens are summed in another way than one alone."""
    rng = np.random.default_rng(3)
    data = np.full((32, 2 * 144), 0xFF, np.uint8)
    for at in (0, 144):  # d and m, small numbers
        data[:, at : at + 4] = np.array([0x1234, 0x1111], np.uint16).view(np.uint8)
    data[1::3, 20::7] = rng.integers(0, 256, data[1::3, 20::7].shape)
    weight = Weight(data, TYPES["Q4_K"], 32, 512)
    x = np.where(rng.random((19, 512)) < 0.97, 1.0, rng.random((19, 512))).astype(np.float32)
    together = linear(x, weight, how=How(isa=isa))
    alone = np.concatenate([linear(x[i : i + 1], weight, how=How(isa=isa)) for i in range(len(x))])
    assert np.array_equal(together, alone)
