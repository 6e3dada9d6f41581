"""The native CPU backend against llama.cpp: both round activations, both are judged by their distance to the truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from engine.backends.cpu import native_backend
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.messages import EngineSettings, KvType
from engine.models.families import spec_from_gguf
from engine.offline import run_logits
from engine.placement import plan_cpu
from kernels.native_program import NativeProgram
from tests.engine.parity import (
    DATA,
    GEMMA_GAP,
    GEMMA_LIMIT,
    SURE_GAP,
    TWIN_LIMIT,
    Floats,
    Golden,
    Pages,
    all_logits,
    batch_of,
    greedy,
    native_error,
    parity_folder,
    relative_errors,
    sure_steps,
    twin_error,
)

FLOAT_MODELS = sorted(
    path.stem for path in (DATA / "models").glob("*.gguf") if not path.stem.startswith(("type-", "ds2-"))
)


@contextmanager
def native(path: Path, kv: KvType = "f32") -> Iterator[tuple[NativeProgram, PageLayout]]:
    with GgufFile.open(path) as file:
        spec = spec_from_gguf(file)
        layout = PageLayout.for_spec(spec, kv, kv)
        (stretch,) = plan_cpu(spec).stretches
        yield native_backend(file, spec, layout, stretch, threads=2), layout


def llama_cpp_twin_error(golden: Golden, which: str) -> float:
    """How far llama.cpp itself, on the quantised file, is from the float32 truth."""
    own = golden.arrays[f"pos{which}"].tolist()
    rows = [own.index(position) for position in golden.exact(f"pos{which}").tolist()]
    return float(relative_errors(golden.arrays[f"log{which}"][rows], golden.exact(f"log{which}")).max())


@pytest.mark.parametrize("name", FLOAT_MODELS)
def test_float_weights_are_computed_in_float32(name: str) -> None:
    golden = Golden.load(DATA / "goldens" / f"{name}.npz")
    gemma = "gemma" in name
    with native(DATA / "models" / f"{name}.gguf") as (backend, layout):
        for which in "AB":
            logits = all_logits(backend, layout, golden.tokens(which))
            assert twin_error(golden, which, logits) < (GEMMA_LIMIT if gemma else TWIN_LIMIT)
        steps = sure_steps(golden, GEMMA_GAP if gemma else SURE_GAP)
        chosen = greedy(backend, layout, golden.tokens("A"), steps)
    assert steps >= 8
    np.testing.assert_array_equal(chosen, golden.exact("greedy_tok")[:steps])


@pytest.mark.parametrize("name", ["ds2-lite-mini", "ds2-v3-mini"])
def test_latent_attention_of_generated_tokens_is_that_of_prompts_but_for_rounding(name: str) -> None:
    tokens = Golden.load(DATA / "goldens" / f"{name}.npz").tokens("A")
    with native(DATA / "models" / f"{name}.gguf") as (backend, layout):
        prompt = all_logits(backend, layout, tokens)
        pages = Pages(layout, len(tokens))
        batch = batch_of(tokens, 0, pages)
        batch.roles[:] = 1
        generated = backend.step(batch).logits
    assert 0 < relative_errors(generated, prompt).max() < 1e-5


def test_quantised_weights_round_no_worse_than_llama_cpp() -> None:
    golden = Golden.load(DATA / "goldens" / "type-dense-q4_1.npz")
    with native(DATA / "models" / "type-dense-q4_1.gguf") as (backend, layout):
        logits = all_logits(backend, layout, golden.tokens("A"))
    assert native_error(golden, "A", logits) < golden.native_limit()
    assert twin_error(golden, "A", logits) < 1.2 * llama_cpp_twin_error(golden, "A")


@pytest.mark.slow
def test_quantised_families_and_types_are_mostly_closer_to_the_truth_than_llama_cpp() -> None:
    """Over all reference files. In random mixtures of experts a rounding may choose another expert, which moves logits
    by half: such files are outliers on either side. Where both round alike the errors are the same but for sums' order,
    and how many these are depends on the machine."""
    folder, ratios = parity_folder(), {}
    for path in sorted((folder / "goldens" / "tiny").glob("*.npz")):
        golden = Golden.load(path)
        if "twin_logA" in golden.arrays:
            with native(folder / "models" / "tiny" / f"{path.stem}.gguf") as (backend, layout):
                logits = all_logits(backend, layout, golden.tokens("A"))
            ratios[path.stem] = twin_error(golden, "A", logits) / llama_cpp_twin_error(golden, "A")
    assert len(ratios) >= 40
    found = np.array(list(ratios.values()))
    assert np.count_nonzero(found < 0.999) > np.count_nonzero(found > 1.001), ratios
    assert np.median(found) < 1 + 1e-6
    assert np.quantile(found, 0.9) < 1.3, ratios


def best_token_errors(golden: Golden, which: str, logits: Floats) -> tuple[float, float]:
    """RMS error of the best tokens' logits at every position: (ours, llama.cpp's), both against the twin.

    Only tokens that are among the best 20 of both the twin and llama.cpp have a figure of llama.cpp.
    """
    ours, theirs = [], []
    exact = zip(golden.arrays[f"twin_top{which}_ids"], golden.arrays[f"twin_top{which}_val"], strict=True)
    native_ = zip(golden.arrays[f"top{which}_ids"], golden.arrays[f"top{which}_val"], strict=True)
    for row, (ids, values), (native_ids, native_values) in zip(logits, exact, native_, strict=True):
        _, left, right = np.intersect1d(ids, native_ids, return_indices=True)
        ours.append(row[ids[left]] - values[left])
        theirs.append(native_values[right] - values[left])
    return _rms(np.concatenate(ours)), _rms(np.concatenate(theirs))


def native_norm(golden: Golden, which: str, logits: Floats) -> float:
    """Relative error over all stored positions together, as `native_vs_twin_rel` was taken."""
    theirs = golden.arrays[f"log{which}"]
    return float(np.linalg.norm(logits[golden.arrays[f"pos{which}"]] - theirs) / np.linalg.norm(theirs))


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.model
def test_starter_model_is_no_farther_from_the_truth_than_llama_cpp(starter_model: Path) -> None:
    golden = Golden.load(DATA / "goldens" / "smollm2-135m-q4_1.npz")
    with native(starter_model) as (backend, layout):
        logits = {which: all_logits(backend, layout, golden.tokens(which)) for which in "AB"}
    # Over both texts: any last bit of a sum moves one text's figure by a tenth, for other activations round up.
    errors = [best_token_errors(golden, which, rows) for which, rows in logits.items()]
    ours, theirs = (_rms(np.array(found)) for found in zip(*errors, strict=True))
    assert ours < 1.05 * theirs
    for which, rows in logits.items():
        top1 = np.mean(rows.argmax(-1) == golden.arrays[f"twin_top{which}_ids"][:, 0])
        assert top1 >= 0.9
        assert native_norm(golden, which, rows) < golden.native_limit()


@pytest.mark.model
def test_starter_model_has_the_same_bits_in_any_chunks(starter_model: Path) -> None:
    tokens = Golden.load(DATA / "goldens" / "smollm2-135m-q4_1.npz").tokens("A")
    with native(starter_model, "f16") as (backend, layout):
        whole = all_logits(backend, layout, tokens)
        for chunk in (1, 37):
            np.testing.assert_array_equal(all_logits(backend, layout, tokens, chunk), whole)


def test_run_logits_gives_all_rows_and_what_follows() -> None:
    golden = Golden.load(DATA / "goldens" / "llama-yarn-f32.npz")
    settings = EngineSettings(kv_type_k="f32", kv_type_v="f32", prefill_chunk=40, threads=1)
    ids = golden.tokens("A").tolist()
    logits, following = run_logits(DATA / "models" / "llama-yarn-f32.gguf", ids, 8, settings)
    assert logits.shape == (96, 1024)
    assert twin_error(golden, "A", logits) < TWIN_LIMIT
    assert following == golden.exact("greedy_tok")[:8].tolist()
