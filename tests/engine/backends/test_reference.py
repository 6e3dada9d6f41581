"""The reference backend against llama.cpp's float32 logits, and against itself in other chunks, types and batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.backends.reference import ReferenceBackend
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.messages import KvType
from engine.models.families import spec_from_gguf
from tests.engine.parity import (
    DATA,
    GEMMA_GAP,
    GEMMA_LIMIT,
    SURE_GAP,
    TWIN_LIMIT,
    Golden,
    Pages,
    all_logits,
    batch_of,
    greedy,
    parity_folder,
    relative_errors,
    sure_steps,
    twin_error,
)

STORED = sorted(path.stem for path in (DATA / "models").glob("*.gguf"))


@contextmanager
def reference(path: Path, kv: KvType = "f32") -> Iterator[tuple[ReferenceBackend, PageLayout]]:
    with GgufFile.open(path) as file:
        spec = spec_from_gguf(file)
        layout = PageLayout.for_spec(spec, kv, kv)
        yield ReferenceBackend(file, spec, layout), layout


def check_against(golden: Golden, path: Path, greedy_steps: int = 48) -> None:
    with reference(path) as (backend, layout):
        logits = {which: all_logits(backend, layout, golden.tokens(which)) for which in "AB"}
        gemma = "gemma" in path.name
        steps = min(sure_steps(golden, GEMMA_GAP if gemma else SURE_GAP), greedy_steps)
        chosen = greedy(backend, layout, golden.tokens("A"), steps)
    for which, values in logits.items():
        assert twin_error(golden, which, values) < (GEMMA_LIMIT if gemma else TWIN_LIMIT), path.name
    assert steps >= min(8, greedy_steps)
    np.testing.assert_array_equal(chosen, golden.exact("greedy_tok")[:steps], path.name)


@pytest.mark.parametrize("name", STORED)
def test_stored_models(name: str) -> None:
    check_against(Golden.load(DATA / "goldens" / f"{name}.npz"), DATA / "models" / f"{name}.gguf")


@pytest.mark.slow
def test_all_tiny_models() -> None:
    folder = parity_folder()
    names = sorted(path.stem for path in (folder / "goldens" / "tiny").glob("*.npz"))
    assert len(names) >= 60
    for name in names:
        golden = Golden.load(folder / "goldens" / "tiny" / f"{name}.npz")
        check_against(golden, folder / "models" / "tiny" / f"{name}.gguf", greedy_steps=8)


@pytest.mark.slow
@pytest.mark.model
def test_starter_model(starter_model: Path) -> None:
    golden = Golden.load(parity_folder() / "goldens" / "real" / "smollm2-135m-q4_1.npz")
    check_against(golden, starter_model, greedy_steps=4)


def tokens_of(count: int) -> np.ndarray:
    return np.random.default_rng(11).integers(0, 1024, count, np.int32)


@pytest.mark.parametrize("chunk", [1, 7, 64, 200])
def test_chunks_change_nothing_but_rounding(chunk: int) -> None:
    tokens = tokens_of(150)
    with reference(DATA / "models" / "llama-yarn-f32.gguf") as (backend, layout):
        whole = all_logits(backend, layout, tokens)
        parts = all_logits(backend, layout, tokens, chunk)
    assert len(tokens) > layout.page_tokens
    assert relative_errors(parts, whole).max() < 1e-5


@pytest.mark.parametrize(("kv", "limit"), [("f16", 5e-3), ("bf16", 4e-2), ("q8", 5e-2)])
def test_kv_types_lose_little(kv: KvType, limit: float) -> None:
    tokens = tokens_of(150)
    with reference(DATA / "models" / "type-dense-q4_1.gguf") as (backend, layout):
        exact = all_logits(backend, layout, tokens, 33)
    with reference(DATA / "models" / "type-dense-q4_1.gguf", kv) as (backend, layout):
        stored = all_logits(backend, layout, tokens, 33)
    errors = relative_errors(stored, exact)
    assert 0 < errors.max() < limit


def test_sequences_in_one_batch_and_reading_without_writing() -> None:
    a, b = tokens_of(90), tokens_of(140)[::-1].copy()
    with reference(DATA / "models" / "qwen3-f32.gguf") as (backend, layout):
        alone = all_logits(backend, layout, a), all_logits(backend, layout, b)
        pages = Pages(layout, 140), Pages(layout, 140)
        backend.step(batch_of(a[:-1], 0, pages[0]))
        both = batch_of(np.concatenate([a[-1:], b]), 0, pages[0])
        both = replace(
            both,
            seq_rows=np.asarray([0, 1, 141], np.int32),
            seq_start=np.asarray([89, 0], np.int32),
            pages=np.concatenate([page.addresses for page in pages]),
            seq_write=np.ones(2, np.uint8),
            out_rows=np.asarray([140, 0], np.int32),
        )
        result = backend.step(both)
        again = backend.step(replace(batch_of(a[-1:], 89, pages[0]), seq_write=np.zeros(1, np.uint8)))
        assert relative_errors(result.logits, np.stack([alone[1][-1], alone[0][-1]])).max() < 1e-5
        assert relative_errors(again.logits, alone[0][-1:]).max() < 1e-5
        np.testing.assert_allclose(backend.head(again.hidden), again.logits, rtol=1e-5, atol=1e-5)


def test_cancel_ends_the_step_early() -> None:
    with reference(DATA / "models" / "qwen2-f32.gguf") as (backend, layout):
        batch = batch_of(tokens_of(9), 0, Pages(layout, 9))
        batch.cancel[0] = 1
        assert not backend.step(batch).completed
