"""The starter model's first layers as mixtures of experts that compute the same function, against the dense form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.messages import BackendName, EngineSettings
from engine.offline import run_logits
from tests.engine.parity import SURE_GAP, Floats, relative_errors
from tests.engine.upcycled import Plan, write

pytestmark = [pytest.mark.model, pytest.mark.slow]
TEXT = list(range(1000, 1024))
STEPS = 12


def run(path: Path, backend: BackendName, greedy: int = STEPS) -> tuple[Floats, list[int]]:
    settings = EngineSettings(backend=backend, kv_type_k="f32", kv_type_v="f32", threads=2)
    return run_logits(path, TEXT, greedy, settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upcycled")


@pytest.fixture(scope="module")
def dense(starter_model: Path, folder: Path) -> Path:
    return write(starter_model, folder / "dense.gguf", Plan("dense"))


@pytest.mark.parametrize(("form", "experts"), [("split", 8), ("copies", 4), ("shared", 4)])
def test_float_forms_are_the_dense_model(starter_model: Path, folder: Path, dense: Path, form, experts: int) -> None:
    path = write(starter_model, folder / "mixture.gguf", Plan(form, experts))
    (wanted, text), (logits, same) = run(dense, "cpu"), run(path, "cpu")
    assert np.abs(logits - wanted).max() < 1e-4
    assert same == text
    reference, _ = run(path, "reference", 0)
    assert np.abs(reference - wanted).max() < 1e-4


def test_the_quantised_form_says_the_same(starter_model: Path, folder: Path) -> None:
    """Sums are rounded elsewhere, so the text is compared up to the first step whose best two are that near."""
    dense = write(starter_model, folder / "dense-q4.gguf", Plan("dense", floats=False))
    split = write(starter_model, folder / "split-q4.gguf", Plan("split", 8, floats=False))
    (wanted, text), (logits, same) = run(dense, "cpu"), run(split, "cpu")
    noise = float(relative_errors(logits, wanted).max())
    assert noise < 0.03, "the model's own difference between prefill and single steps is 0.02"
    first = next((i for i, (a, b) in enumerate(zip(same, text, strict=True)) if a != b), STEPS)
    if first < STEPS:
        settings = EngineSettings(backend="cpu", kv_type_k="f32", kv_type_v="f32", threads=2)
        best = np.sort(run_logits(dense, [*TEXT, *text[:first]], 0, settings)[0][-1])[-2:]
        assert best[1] - best[0] < max(SURE_GAP, noise * float(np.linalg.norm(wanted[-1])) / 10)
