"""Which backend settings choose, and that plans, micro-batches and the stand-in device change no result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.errors import EngineError
from engine.loading import load
from engine.messages import EngineSettings
from engine.offline import run_logits
from tests.engine.parity import DATA, Golden, relative_errors

MODEL = DATA / "models" / "glm4moe-mini.gguf"
TOKENS = [int(token) for token in Golden.load(DATA / "goldens" / "glm4moe-mini.npz").tokens("A")]
CPU = EngineSettings(kv_type_k="f32", kv_type_v="f32", threads=2)
FAKE = replace(CPU, backend="fake")


def loaded_devices(settings: EngineSettings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    model = load(MODEL, settings, lambda stage: None)
    model.gguf.close()
    return model.handle.info.devices, model.handle.warnings


@pytest.mark.parametrize(
    "plan",
    [
        {"gpu_layers": 1 << 16, "cpu_moe": True},
        {"gpu_layers": 1 << 16, "n_cpu_moe": 1},
        {"gpu_layers": 1},
        {"tensor_overrides": ("attn_=GPU",)},
        {},
    ],
)
def test_a_plan_over_the_stand_in_device_gives_the_logits_of_the_cpu(plan: dict[str, object]) -> None:
    settings = replace(FAKE, **plan)  # type: ignore[arg-type]
    wanted, greedy = run_logits(MODEL, TOKENS, 4, CPU)
    got, chosen = run_logits(MODEL, TOKENS, 4, settings)
    assert relative_errors(got, wanted).max() < 1e-4
    assert chosen == greedy
    devices, _ = loaded_devices(settings)
    assert devices == (("CPU, 2 threads", "gpu0, a stand-in on the CPU") if plan else ("CPU, 2 threads",))


@pytest.mark.parametrize("rows", [1, 7, 40, 1000])
def test_micro_batches_change_no_bit(rows: int) -> None:
    wanted, greedy = run_logits(MODEL, TOKENS, 4, CPU)
    got, chosen = run_logits(MODEL, TOKENS, 4, replace(CPU, micro_batch=rows, prefill_chunk=50))
    np.testing.assert_array_equal(got, wanted)
    assert chosen == greedy


def test_without_a_gpu_a_plan_for_one_runs_on_the_cpu_and_says_so() -> None:
    devices, warnings = loaded_devices(replace(CPU, gpu_layers=2))
    assert devices == ("CPU, 2 threads",)
    assert any("names gpu0; there is none" in warning for warning in warnings)
    assert not any("gpu0" in warning for warning in loaded_devices(CPU)[1])


def test_what_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="not available"):
        load(MODEL, replace(CPU, backend="gpu"), lambda stage: None)
    with pytest.raises(EngineError, match="-ot") as caught:
        load(MODEL, replace(FAKE, tensor_overrides=("attn[=GPU",)), lambda stage: None)
    assert "regular expression" in caught.value.why


def test_pages_of_one_plan_are_not_taken_for_those_of_another() -> None:
    labels = set()
    for settings in (CPU, FAKE, replace(FAKE, gpu_layers=1), replace(FAKE, gpu_layers=2)):
        model = load(MODEL, settings, lambda stage: None)
        model.gguf.close()
        labels.add(model.numerics)
    assert len(labels) == 4
