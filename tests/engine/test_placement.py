"""Plans: llama.cpp's options, overrides, bytes per device, and what fits a budget."""

from __future__ import annotations

import pytest

from engine.errors import EngineError
from engine.gguf import GgufFile, TensorInfo
from engine.kv.layout import PageLayout
from engine.models.families import spec_from_gguf
from engine.models.spec import ModelSpec
from engine.placement import Block, blocks, make_plan, plan_cpu
from engine.placement_bytes import PlanReport, fit_plan, report_plan
from engine.placement_options import ALL_LAYERS, Override, PlacementOptions, parse_options
from engine.tensor_classes import class_of, layer_of
from tests.engine.parity import DATA

Model = tuple[ModelSpec, list[TensorInfo], PageLayout]


@pytest.fixture(scope="module")
def glm() -> Model:
    """A dense layer, then a MoE layer with a shared part, then one for further tokens that is not used."""
    with GgufFile.open(DATA / "models" / "glm4moe-mini.gguf") as file:
        spec = spec_from_gguf(file)
        return spec, list(file.tensors.values()), PageLayout.for_spec(spec, "f16", "f16")


def report(model: Model, options: PlacementOptions, context: int = 512, batch: int = 64) -> PlanReport:
    spec, tensors, layout = model
    return report_plan(spec, tensors, layout, make_plan(spec, tensors, options), context, batch)


CLASSES = {
    "token_embd.weight": "embedding",
    "output.weight": "head",
    "output_norm.weight": "norms",
    "blk.3.attn_q.bias": "attention",
    "blk.3.attn_kv_a_norm.weight": "norms",
    "blk.3.ffn_gate_inp.weight": "router",
    "blk.3.exp_probs_b.bias": "router",
    "blk.3.ffn_gate_inp_shexp.weight": "shared",
    "blk.3.ffn_down_shexp.weight": "shared",
    "blk.3.ffn_gate_up_exps.weight": "experts",
    "blk.3.ffn_up.7.weight": "experts",
    "blk.3.ffn_up.weight": "dense_ffn",
    "blk.3.ffn_norm.weight": "norms",
    "rope_freqs.weight": "other",
}


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_tensors(name: str) -> None:
    assert class_of(name) == CLASSES[name]
    assert layer_of(name) == (3 if name.startswith("blk") else -1)


def test_all_on_the_cpu(glm: Model) -> None:
    plan = plan_cpu(glm[0])
    assert (plan.devices, len(plan.stretches), plan.warnings) == (("cpu",), 1, ())
    assert plan.stretches[0].blocks == blocks(glm[0])
    found = report(glm, PlacementOptions())
    assert found.use_of("cpu").weights == sum(info.nbytes for info in glm[1])
    assert found.use_of("cpu").kv == 512 // glm[2].page_tokens * glm[2].payload_bytes
    assert found.crossings == 0


def test_layers_go_to_the_gpu_from_the_last_on(glm: Model) -> None:
    spec, tensors, _ = glm
    plan = make_plan(spec, tensors, PlacementOptions(gpu_layers=1))
    places = [plan.device_of(block) for block in blocks(spec)]
    assert places == ["cpu", "cpu", "cpu", "gpu0", "gpu0", "cpu"]
    whole = make_plan(spec, tensors, PlacementOptions(gpu_layers=ALL_LAYERS))
    assert [whole.device_of(block) for block in blocks(spec)] == ["cpu"] + ["gpu0"] * 5
    assert whole.experts == {1: "gpu0"}


def test_experts_stay_behind(glm: Model) -> None:
    for options in (parse_options(cpu_moe=True, gpu_layers="all"), parse_options(n_cpu_moe=2, gpu_layers=-1)):
        found = report(glm, options)
        assert found.plan.device_of(Block("moe_ffn", 1)) == "gpu0"
        assert found.plan.experts == {1: "cpu"}
        assert found.crossings == 3  # into the GPU, and to the experts and back
        experts = [use for use in found.classes if use.tensor_class == "experts"]
        assert [(use.device, use.tensors) for use in experts] == [("cpu", 6)]
        assert {use.device for use in found.classes if use.tensor_class in ("shared", "router")} >= {"gpu0"}
        assert found.use_of("cpu").kv == 0
    assert report(glm, parse_options(n_cpu_moe=1, gpu_layers="all")).plan.experts == {1: "gpu0"}


def test_overrides_name_tensors(glm: Model) -> None:
    spec, tensors, _ = glm
    options = parse_options([r"exps=CPU,blk\.1\.attn_.*=CUDA1"], gpu_layers="all")
    plan = make_plan(spec, tensors, options)
    assert plan.experts == {1: "cpu"}
    assert plan.device_of(Block("attention", 1)) == "gpu1"
    assert plan.device_of(Block("attention", 0)) == "gpu0"
    assert plan.warnings == ()


def test_a_block_that_rules_tear_apart_stays_whole(glm: Model) -> None:
    spec, tensors, _ = glm
    plan = make_plan(spec, tensors, parse_options([r"blk\.0\.attn_k=GPU"]))
    assert plan.device_of(Block("attention", 0)) == "cpu"
    assert plan.warnings == ("Block attention 0: rules ask for cpu and gpu0; all of it goes to cpu.",)


def test_rules_are_read_as_llama_cpp_writes_them() -> None:
    options = parse_options([r"blk\.(1|2){1,2}\..*exps=CPU,ffn_[gu,x]=gpu0", "output=CUDA"])
    assert options.overrides == (
        Override(r"blk\.(1|2){1,2}\..*exps", "cpu"),
        Override("ffn_[gu,x]", "gpu0"),
        Override("output", "gpu0"),
    )
    assert parse_options(gpu_layers="7").gpu_layers == 7


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"overrides": ["exps"]}, "-ot exps"),
        ({"overrides": ["a(=CPU"]}, "a regular expression"),
        ({"overrides": ["a=TPU"]}, "a device"),
        ({"overrides": ["=CPU"]}, "REGEX=DEVICE"),
        ({"gpu_layers": "some"}, "--gpu-layers some"),
        ({"n_cpu_moe": -1}, "--n-cpu-moe -1"),
    ],
)
def test_unreadable_options_are_named(change: dict[str, object], expected: str) -> None:
    with pytest.raises(EngineError) as caught:
        parse_options(**change)  # type: ignore[arg-type]
    assert expected in str(caught.value)


def test_every_byte_is_counted_once(glm: Model) -> None:
    for options in (PlacementOptions(gpu_layers=1), parse_options(["exps=CPU"], gpu_layers="all")):
        found = report(glm, options)
        assert sum(use.weights for use in found.devices) == sum(info.nbytes for info in glm[1])
        assert sum(use.bytes for use in found.classes) == sum(use.weights for use in found.devices)
        assert sum(use.kv for use in found.devices) == sum(glm[2].layer_bytes(i) for i in range(2)) * (
            512 // glm[2].page_tokens
        )
        assert all(sum(size for _, size in use.types) == use.bytes for use in found.classes)


def test_a_budget_takes_attention_first_and_then_experts(glm: Model) -> None:
    spec, tensors, layout = glm
    full = report(glm, PlacementOptions(gpu_layers=ALL_LAYERS)).use_of("gpu0").total
    without = report(glm, PlacementOptions(gpu_layers=ALL_LAYERS, cpu_moe=True)).use_of("gpu0").total
    assert fit_plan(spec, tensors, layout, full, 512, 64).plan.experts == {1: "gpu0"}
    kept = fit_plan(spec, tensors, layout, full - 1, 512, 64)
    assert kept.plan.experts == {1: "cpu"}
    assert kept.use_of("gpu0").total <= full - 1
    fewer = fit_plan(spec, tensors, layout, without - 1, 512, 64)
    assert fewer.plan.device_of(Block("attention", 0)) == "cpu" or fewer.plan.device_of(Block("head")) == "cpu"
    assert fewer.use_of("gpu0").total < without
    assert fit_plan(spec, tensors, layout, 0, 512, 64).plan.devices == ("cpu",)


def test_compute_grows_with_the_batch(glm: Model) -> None:
    small, large = (report(glm, PlacementOptions(), batch=rows).use_of("cpu").compute for rows in (1, 257))
    spec = glm[0]
    assert (large - small) % (256 * 4) == 0
    assert (large - small) // (256 * 4) > 2 * spec.channels
