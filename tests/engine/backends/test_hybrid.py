"""The seam between devices: plans over CPU and fake device give the logits of one device, moving what they must."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.backends.fake.reference import FakeDevice
from engine.backends.hybrid import HybridBackend
from engine.errors import EngineError
from engine.gguf import GgufFile
from engine.kv.layout import PageLayout
from engine.models.families import spec_from_gguf
from engine.placement import make_plan
from engine.placement_options import PlacementOptions, parse_options
from tests.engine.parity import (
    DATA,
    GEMMA_LIMIT,
    TWIN_LIMIT,
    Floats,
    Golden,
    Pages,
    all_logits,
    batch_of,
    relative_errors,
    twin_error,
)

ALL = PlacementOptions(gpu_layers=1 << 16)
PLANS = {
    "all on the device": ALL,
    "experts on the CPU": replace(ALL, cpu_moe=True),
    "last layer and head on the device": PlacementOptions(gpu_layers=1),
    "all on the CPU": PlacementOptions(),
    "attention on the device": parse_options([r"attn_=GPU,ffn_=CPU"]),
}
MODELS = ["glm4moe-mini", "gptoss-mini", "ds2-v3-mini", "granitemoe-mini", "qwen2moe-mini", "gemma3-mini"]


@contextmanager
def opened(name: str, options: PlacementOptions) -> Iterator[tuple[HybridBackend, FakeDevice, PageLayout]]:
    devices: list[FakeDevice] = []
    with GgufFile.open(DATA / "models" / f"{name}.gguf") as file:
        spec = spec_from_gguf(file)
        layout = PageLayout.for_spec(spec, "f32", "f32")
        plan = make_plan(spec, file.tensors.values(), options)

        def make(experts: object) -> FakeDevice:
            devices.append(FakeDevice(file, spec, layout, experts))  # type: ignore[arg-type]
            return devices[-1]

        yield HybridBackend(file, spec, layout, plan, 2, make), devices[0], layout


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("plan", ["experts on the CPU", "attention on the device"])
def test_two_devices_give_the_reference_logits(name: str, plan: str) -> None:
    golden = Golden.load(DATA / "goldens" / f"{name}.npz")
    with opened(name, PLANS[plan]) as (backend, _, layout):
        logits = all_logits(backend, layout, golden.tokens("A"), chunk=40)
    assert twin_error(golden, "A", logits) < (GEMMA_LIMIT if "gemma" in name else TWIN_LIMIT)


def logits_and_traffic(plan: str, tokens: Floats | np.ndarray) -> tuple[Floats, FakeDevice]:
    with opened("glm4moe-mini", PLANS[plan]) as (backend, device, layout):
        pages = Pages(layout, len(tokens))  # must outlive the step
        return backend.step(batch_of(tokens, 0, pages)).logits, device


def test_every_plan_moves_what_it_must_and_no_more() -> None:
    """Two layers of 32 channels, the second a mixture with 2 experts used; rows are float32."""
    tokens = np.random.default_rng(3).integers(0, 320, 23, np.int32)
    rows = len(tokens) * 32 * 4
    routing = len(tokens) * 2 * 2 * 4
    expected = {
        "all on the CPU": (0, 0, 0, 0),
        "all on the device": (1, 0, rows, 0),  # the embedding is always the CPU's
        "experts on the CPU": (2, 2, 2 * rows, rows + routing),
        "last layer and head on the device": (1, 1, rows, rows),
        "attention on the device": (2, 2, 2 * rows, 2 * rows),
    }
    results = {plan: logits_and_traffic(plan, tokens) for plan in PLANS}
    for plan, (logits, device) in results.items():
        moved = device.uploads, device.downloads, device.uploaded_bytes, device.downloaded_bytes
        assert moved == expected[plan], plan
        assert relative_errors(logits, results["all on the CPU"][0]).max() < 1e-5, plan


def test_kept_hidden_vectors_give_the_logits_again() -> None:
    for plan in ("experts on the CPU", "attention on the device"):
        with opened("glm4moe-mini", PLANS[plan]) as (backend, _, layout):
            pages = Pages(layout, 5)
            result = backend.step(batch_of(np.arange(5, dtype=np.int32), 0, pages))
            np.testing.assert_allclose(backend.head(result.hidden), result.logits, rtol=1e-5, atol=1e-5)


def test_cancel_ends_a_step_between_stretches() -> None:
    with opened("glm4moe-mini", PLANS["experts on the CPU"]) as (backend, device, layout):
        pages = Pages(layout, 5)
        batch = batch_of(np.arange(5, dtype=np.int32), 0, pages)
        batch.cancel[0] = 1
        assert not backend.step(batch).completed
        assert device.uploads == 0


@pytest.mark.parametrize("rules", [["attn_=GPU0,ffn_=GPU1"], ["exps=GPU0"]])
def test_plans_that_no_backend_runs_are_refused(rules: list[str], tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="The placement cannot be used"), opened("glm4moe-mini", parse_options(rules)):
        pass
