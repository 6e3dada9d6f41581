"""Describing, checking and measuring model files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError, ModelFileError
from engine.gguf import GgufFile
from engine.messages import EngineSettings
from engine.model_check import check_model
from engine.model_report import describe_model
from engine.perplexity import divergence, losses_of, measure_perplexity
from tests.engine.gguf_bytes import STRING, U32
from tests.engine.parity import DATA
from tests.engine.tiny_model import saved

MODELS = DATA / "models"
SETTINGS = EngineSettings(kv_type_k="f32", kv_type_v="f32", threads=1)


def test_a_mixture_of_experts_is_described() -> None:
    report = describe_model(MODELS / "glm4moe-mini.gguf")
    assert (report.architecture, report.family) == ("glm4moe", "GLM 4.5 and 4.6")
    assert (report.layers, report.parts, report.vocabulary, report.context) == (2, 1, 320, 512)
    assert report.experts == "2 of 6 experts in 1 of 2 layers, a shared part of 32"
    assert report.attention == "4 query heads over 2, 16 channels"
    assert report.kv_bytes_per_token == 2 * 2 * 2 * 16 * 2
    assert (report.unsupported, report.tokenizer) == ((), "gpt2 / smollm")
    assert report.templates == ("default",)
    with GgufFile.open(MODELS / "glm4moe-mini.gguf") as file:
        assert report.bytes == sum(info.nbytes for info in file.tensors.values())
    assert sum(part.bytes for part in report.classes) == report.bytes
    assert sum(part.parameters for part in report.classes) == report.parameters
    with GgufFile.open(MODELS / "glm4moe-mini.gguf") as file:
        used = [info for name, info in file.tensors.items() if not name.startswith(("blk.2.", "token_embd"))]
    experts = 3 * 32 * 32 * 6  # gate, up, down
    assert report.active_parameters == sum(info.rows * info.cols for info in used) - experts * 4 // 6


def test_windows_and_latent_attention_are_described() -> None:
    assert "2 of 3 layers see 20 tokens" in describe_model(MODELS / "gemma3-mini.gguf").attention
    assert "latent (MLA), 4 heads, 32 + 8 channels" in describe_model(MODELS / "ds2-v3-mini.gguf").attention


def test_a_tied_embedding_is_active() -> None:
    report = describe_model(MODELS / "llama-tied-ropefreqs-f32.gguf")
    assert report.active_parameters == report.parameters


def test_what_is_unsupported_is_told_with_the_rest(tmp_path: Path) -> None:
    report = describe_model(saved(tmp_path, {"general.architecture": (STRING, "mamba")}))
    assert "'mamba' is not supported" in report.unsupported[0]
    assert (report.name, report.title, report.layers, report.family) == ("tiny", "Tiny", 0, "")
    assert report.parameters > 0
    report = describe_model(saved(tmp_path, {"tokenizer.ggml.model": (STRING, "rwkv")}))
    assert len(report.unsupported) == 1
    assert "'rwkv'" in report.unsupported[0]
    (tmp_path / "not.gguf").write_bytes(b"no model at all")
    with pytest.raises(ModelFileError):
        describe_model(tmp_path / "not.gguf")


def test_a_sound_model_passes_the_check() -> None:
    report = check_model(MODELS / "qwen2moe-mini.gguf", SETTINGS, smoke_tokens=5)
    assert (report.problems, report.smoke_tokens) == ((), 5)
    assert report.smoke_text
    assert report.sampled_values > 5_000


def test_values_that_are_no_numbers_are_found(tmp_path: Path) -> None:
    data = bytearray((MODELS / "gemma3-mini.gguf").read_bytes())
    with GgufFile.open(MODELS / "gemma3-mini.gguf") as file:
        info = file.tensors["blk.1.attn_q.weight"]
    data[info.offset + info.nbytes - 4 : info.offset + info.nbytes] = np.float32(np.nan).tobytes()
    (tmp_path / "nan.gguf").write_bytes(data)
    report = check_model(tmp_path / "nan.gguf", SETTINGS)
    assert report.problems == ("Tensor 'blk.1.attn_q.weight' has values that are no finite numbers.",)
    assert report.smoke_text == ""


def test_a_broken_model_is_reported_not_raised(tmp_path: Path) -> None:
    report = check_model(saved(tmp_path, {"llama.feed_forward_length": (U32, 24)}))
    assert "'blk.0.ffn_gate.weight' has shape [8, 16], expected [8, 24]" in report.problems[0]


def test_perplexity_is_that_of_the_logits() -> None:
    text = "The old man said that the sea was calm and the birds were silent. " * 12
    seen: list[tuple[int, int]] = []
    found = measure_perplexity(MODELS / "qwen3-f32.gguf", text, SETTINGS, 64, lambda *done: seen.append(done))
    assert found.windows == len(seen) >= 4
    assert found.tokens == 31 * found.windows
    assert seen[-1] == (found.windows, found.windows)
    assert 1 < found.value < 1e9
    with pytest.raises(EngineError, match="The text is too short"):
        measure_perplexity(MODELS / "qwen3-f32.gguf", "short", SETTINGS)


def test_losses_and_divergence_by_hand() -> None:
    logits = np.log(np.asarray([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]], np.float32))
    np.testing.assert_allclose(losses_of(logits + 3, [0, 1]), -np.log([0.5, 0.8]), rtol=1e-6)
    other = np.log(np.asarray([[0.25, 0.5, 0.25], [0.1, 0.8, 0.1]], np.float32))
    found = divergence(other, logits)
    assert found.largest == pytest.approx(0.25 * np.log(2), rel=1e-6)
    assert found.mean == pytest.approx(found.largest / 2)
    assert (found.same_top, found.positions) == (0.5, 2)
