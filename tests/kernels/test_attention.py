from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.attention.cpu import attention
from kernels.attention.reference import attention as reference
from kernels.kv_write.cpu import kv_write
from kernels.kv_write.reference import rotated, stored
from kernels.single import How
from tests.kernels.kv_cases import Pages, layout

PAGE = 64


def normal(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def narrow(isa: str, *types: str) -> tuple[str, str]:
    """How this level multiplies K and V: "bf16", "int8", or as floats."""
    k, v = ("int8" if kind in ("q8", "q4") and isa.startswith("avx512") else "" for kind in types)
    if isa == "avx512bf16":
        k, v = "bf16" if types[0] == "bf16" else k, "bf16" if types[1] in ("f16", "bf16") else v
    return k, v


def check(got: np.ndarray, wanted: np.ndarray, narrowed: tuple[str, str], name: str = "") -> None:
    """Rounded weights of values about 1 in size differ by half a unit of 2^-8 (bf16) or 2^-14 of the largest (int8);
    other differences are order of sums."""
    rtol, atol = 2e-5, {"bf16": 6e-3, "int8": 1e-3, "": 1e-4 if narrowed[0] else 3e-6}[narrowed[1]]
    np.testing.assert_allclose(got, wanted, rtol=1e-4 if narrowed[0] else rtol, atol=atol, err_msg=name)


def written(tokens: int, heads: int, dim_k: int, dim_v: int, types: tuple[str, str], how: How) -> Pages:
    layer = layout(heads, dim_k, dim_v, *types, PAGE)
    pages = Pages.make(layer, PAGE, 1, tokens)
    k, v = normal(tokens, heads * dim_k, seed=1), normal(tokens, heads * dim_v, seed=2)
    kv_write(k, v, layer, PAGE, pages.batch([tokens], [0]), how)
    return pages


@pytest.mark.parametrize("kv_type", ["f32", "f16", "bf16", "q8", "q4"])
def test_stored_values_round_once(isa: str, kv_type: str) -> None:
    tokens, heads, dim = 100, 3, 32
    layer = layout(heads, dim, dim, kv_type, "f32", PAGE)
    pages = Pages.make(layer, PAGE, 1, tokens)
    k, v = normal(tokens, heads * dim, seed=1), normal(tokens, heads * dim, seed=2)
    k[3] *= 1e-9
    k[4] = 0
    kv_write(k, v, layer, PAGE, pages.batch([tokens], [0]), How(isa=isa))
    got_k, got_v = pages.read(0, tokens)
    wanted = stored(torch.from_numpy(k).reshape(tokens, heads, dim), kv_type)
    assert torch.equal(got_k, wanted)
    assert torch.equal(got_v.reshape(tokens, -1), torch.from_numpy(v))


def test_a_sequence_that_does_not_write_leaves_pages_alone(isa: str) -> None:
    pages = written(10, 2, 16, 16, ("f16", "f16"), How(isa=isa))
    before = pages.raw.copy()
    rows = normal(1, 32, seed=9)
    kv_write(rows, rows, pages.layer, PAGE, pages.batch([1], [9], write=False), How(isa=isa))
    assert np.array_equal(pages.raw, before)


@pytest.mark.parametrize(
    ("start", "rows", "heads", "kv_heads", "dim_k", "dim_v"),
    [
        (0, 1, 1, 1, 16, 16),
        (0, 70, 6, 2, 20, 36),
        (500, 40, 9, 3, 64, 64),
        (1100, 3, 8, 1, 32, 32),
        (63, 2, 2, 2, 5, 3),
    ],
)
@pytest.mark.parametrize("types", [("f32", "f32"), ("f32", "f16"), ("bf16", "f32"), ("f16", "bf16")])
def test_matches_reference(
    isa: str, types: tuple[str, str], start: int, rows: int, heads: int, kv_heads: int, dim_k: int, dim_v: int
) -> None:
    pages = written(start + rows, kv_heads, dim_k, dim_v, types, How(isa=isa))
    k, v = pages.read(0, start + rows)
    q = normal(rows, heads * dim_k, seed=5)
    shaped = torch.from_numpy(q).reshape(rows, heads, dim_k)
    sinks = normal(heads, seed=6)
    for window, cap, sink in [(0, 0.0, None), (77, 0.0, None), (0, 3.0, sinks), (600, 0.0, sinks)]:
        torch_sinks = None if sink is None else torch.from_numpy(sink)
        narrowed = narrow(isa, *types)
        wanted = reference(shaped, k, v, start, 0.3, window, cap, torch_sinks, narrowed).reshape(rows, -1).numpy()
        batch = pages.batch([rows], [start])
        got = attention(q, pages.layer, PAGE, batch, heads, 0.3, window, cap, sink, How(isa=isa))
        check(got, wanted, narrowed, f"{window} {cap}")


@pytest.mark.parametrize("types", [("bf16", "bf16"), ("q8", "q8"), ("f16", "q8"), ("q4", "q4"), ("q8", "q4")])
@pytest.mark.parametrize(
    ("dim_k", "dim_v", "heads", "start", "rows"),
    [(64, 32, 4, 60, 30), (32, 96, 14, 480, 70), (160, 64, 2, 600, 1), (256, 128, 6, 600, 5), (64, 64, 6, 500, 40)],
)
def test_other_storage_types(
    isa: str, types: tuple[str, str], dim_k: int, dim_v: int, heads: int, start: int, rows: int
) -> None:
    pages = written(start + rows, 2, dim_k, dim_v, types, How(isa=isa))
    k, v = pages.read(0, start + rows)
    q = normal(rows, heads * dim_k, seed=5)
    shaped = torch.from_numpy(q).reshape(rows, heads, dim_k)
    if types[0] == "q4":  # the product is taken between rotated heads
        shaped, k = rotated(shaped), rotated(k)
    narrowed = narrow(isa, *types)
    for window, cap in [(0, 0.0), (77, 0.0), (0, 3.0)]:
        wanted = reference(shaped, k, v, start, 0.125, window, cap, narrow=narrowed)
        got = attention(q, pages.layer, PAGE, pages.batch([rows], [start]), heads, 0.125, window, cap, how=How(isa=isa))
        check(got, wanted.reshape(rows, -1).numpy(), narrowed)


@pytest.mark.parametrize("kv_type", ["f32", "f16", "bf16", "q8", "q4"])
@pytest.mark.parametrize("of", ["keys", "values"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_told_by_every_query_that_sees_it(isa: str, kv_type: str, of: str, value: float) -> None:
    """Of both heads of K and V only the first one's queries; a value in the channels that share its scale."""
    tokens, heads, dim = 600, 6, 64
    pages = Pages.make(layout(2, dim, dim, kv_type, kv_type, PAGE), PAGE, 1, tokens)
    k, v = normal(tokens, 2 * dim, seed=1), normal(tokens, 2 * dim, seed=2)
    (k if of == "keys" else v)[70, 3] = value
    kv_write(k, v, pages.layer, PAGE, pages.batch([tokens], [0]), How(isa=isa))
    told = {"q8": slice(32), "q4": slice(dim)}.get(kv_type, slice(3, 4)) if of == "values" else slice(dim)
    for rows in (1, 9, 300):
        q = np.abs(normal(rows, heads * dim, seed=5))
        batch = pages.batch([rows], [tokens - rows])
        got = attention(q, pages.layer, PAGE, batch, heads, 0.125, how=How(2, isa)).reshape(rows, 2, 3, dim)
        assert np.isfinite(got[:, 1]).all()
        assert not np.isfinite(got[:, 0, :, told]).any()


@pytest.mark.parametrize(("window", "kv_type"), [(0, "f16"), (130, "f16"), (0, "q8"), (0, "q4")])
def test_a_row_does_not_depend_on_its_batch(isa: str, window: int, kv_type: str) -> None:
    tokens, heads, dim = 1090, 6, 32
    pages = written(tokens, 2, dim, dim, (kv_type, kv_type), How(isa=isa))
    q = normal(tokens, heads * dim, seed=5)

    def run(first: int, count: int, threads: int = 1) -> np.ndarray:
        batch = pages.batch([count], [first])
        part = np.ascontiguousarray(q[first : first + count])
        return attention(part, pages.layer, PAGE, batch, heads, 0.2, window, how=How(threads, isa, poison=False))

    together = run(0, tokens)
    assert np.array_equal(together, run(0, tokens, threads=2))
    for first, count in [(0, 1), (511, 1), (512, 1), (1030, 7), (700, 333), (1089, 1), (60, 200)]:
        assert np.array_equal(together[first : first + count], run(first, count, 2)), (first, count)


@pytest.mark.parametrize("heads", range(1, 9))
def test_few_queries_give_what_many_give(isa: str, heads: int) -> None:
    tokens, dims = 530, (96, 80)
    pages = written(tokens, 1, *dims, ("f16", "f16"), How(isa=isa))
    q = normal(tokens, heads * dims[0], seed=5)

    def run(first: int, count: int) -> np.ndarray:
        part = np.ascontiguousarray(q[first : first + count])
        return attention(part, pages.layer, PAGE, pages.batch([count], [first]), heads, 0.2, 200, how=How(1, isa))

    together = run(0, tokens)
    for first, count in [(0, 1), (62, 2), (511, 1), (529, 1), (250, 8 // heads)]:
        assert np.array_equal(together[first : first + count], run(first, count)), (first, count)


@pytest.mark.parametrize("dims", [(96, 1024), (1024, 1024), (1024, 1008), (32, 1040)])
def test_few_queries_of_wide_heads_give_what_many_give(isa: str, dims: tuple[int, int]) -> None:
    tokens, heads = 70, 2
    pages = written(tokens, 1, *dims, ("f16", "f16"), How(isa=isa))
    q = normal(tokens, heads * dims[0], seed=5)
    together = attention(q, pages.layer, PAGE, pages.batch([tokens], [0]), heads, 0.05, how=How(1, isa))
    assert np.isfinite(together).all()
    for first, count in [(0, 1), (62, 4), (69, 1)]:
        part = np.ascontiguousarray(q[first : first + count])
        alone = attention(part, pages.layer, PAGE, pages.batch([count], [first]), heads, 0.05, how=How(1, isa))
        assert np.array_equal(together[first : first + count], alone), (first, count)


def test_other_sequences_do_not_matter(isa: str) -> None:
    layer = layout(2, 16, 16, "f16", "f16", PAGE)
    counts, starts = [5, 1, 30], [0, 620, 100]
    pages = Pages.make(layer, PAGE, 3, 700)
    for sequence, end in enumerate(np.add(counts, starts)):
        k, v = normal(int(end), 32, seed=sequence), normal(int(end), 32, seed=10 + sequence)
        one = Pages(layer, PAGE, pages.raw, pages.table[sequence : sequence + 1])
        kv_write(k, v, layer, PAGE, one.batch([int(end)], [0]), How(isa=isa))
    q = normal(sum(counts), 4 * 16, seed=7)
    together = attention(q, layer, PAGE, pages.batch(counts, starts), 4, 0.25, how=How(2, isa))
    at = 0
    for sequence, (count, start) in enumerate(zip(counts, starts, strict=True)):
        one = Pages(layer, PAGE, pages.raw, pages.table[sequence : sequence + 1])
        rows = np.ascontiguousarray(q[at : at + count])
        alone = attention(rows, layer, PAGE, one.batch([count], [start]), 4, 0.25, how=How(1, isa))
        assert np.array_equal(together[at : at + count], alone)
        at += count


@pytest.mark.parametrize("kv_type", ["f16", "q8", "q4"])
@pytest.mark.parametrize("window", [0, 300])
def test_shared_pages_are_read_for_all_and_change_nothing(isa: str, kv_type: str, window: int) -> None:
    layer = layout(2, 32, 32, kv_type, kv_type, PAGE)
    lengths, shared = [1090, 1090, 700, 1500, 40, 1300], [0, 17, 10, 16, 0, 0]
    pages = Pages.make(layer, PAGE, len(lengths), 1500)
    for sequence, length in enumerate(lengths):
        pages.table[sequence, : shared[sequence]] = pages.table[0, : shared[sequence]]
        one = Pages(layer, PAGE, pages.raw, pages.table[sequence : sequence + 1])
        kept = shared[sequence] * PAGE
        k, v = normal(length - kept, 64, seed=sequence), normal(length - kept, 64, seed=10 + sequence)
        kv_write(k, v, layer, PAGE, one.batch([length - kept], [kept]), How(isa=isa))
    q, starts = normal(len(lengths), 6 * 32, seed=7), [length - 1 for length in lengths]
    batch = pages.batch([1] * len(lengths), starts)
    together = attention(q, layer, PAGE, batch, 6, 0.25, window, how=How(2, isa))
    for sequence, start in enumerate(starts):
        one = Pages(layer, PAGE, pages.raw, pages.table[sequence : sequence + 1])
        row = q[sequence : sequence + 1]
        alone = attention(row, layer, PAGE, one.batch([1], [start]), 6, 0.25, window, how=How(1, isa))
        assert np.array_equal(together[sequence : sequence + 1], alone), sequence
