"""ModelSpec from GGUF keys: what is read, what is derived, and each refusal by name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile
from engine.models.families import FAMILIES, spec_from_gguf
from engine.models.spec import ExpertSpec, MlaSpec, ModelSpec, RopeKind
from tests.engine.gguf_bytes import ARRAY, BOOL, F32, I32, STRING, U32
from tests.engine.parity import DATA
from tests.engine.tiny_model import KEYS, WORDS, Changes, Shapes, saved


def spec_of(folder: Path, keys: Changes | None = None, shapes: Shapes | None = None) -> ModelSpec:
    with GgufFile.open(saved(folder, keys, shapes)) as file:
        return spec_from_gguf(file)


def renamed(architecture: str) -> dict[str, Any]:
    """The tiny model's keys under another architecture."""
    moved: dict[str, Any] = {key: None for key in KEYS if key.startswith("llama.")}
    moved |= {key.replace("llama.", f"{architecture}."): KEYS[key] for key in moved}
    return moved | {"general.architecture": (STRING, architecture)}


def test_keys_become_tables(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    assert (spec.architecture, spec.name, spec.vocabulary) == ("llama", "tiny", len(WORDS))
    assert (spec.channels, spec.context, spec.tied_output, spec.warnings) == (8, 32, True, ())
    assert spec.norm_eps == pytest.approx(1e-5)
    assert [layer.index for layer in spec.layers] == [0, 1]
    assert [(x.attention.heads, x.attention.kv_heads) for x in spec.layers] == [(2, 1), (2, 2)]
    attention = spec.layers[0].attention
    assert (attention.head_dim_k, attention.head_dim_v, attention.scale) == (4, 4, 0.5)
    assert (attention.rope.kind, attention.rope.dims) == (RopeKind.NORM, 4)
    assert attention.rope.inv_freq == pytest.approx((1.0, 0.01))
    assert (attention.bias, attention.qk_norm) == (False, "none")
    assert [layer.ffn.width for layer in spec.layers] == [16, 16]


def test_values_per_layer_and_defaults(tmp_path: Path) -> None:
    keys: Changes = {
        "llama.feed_forward_length": (ARRAY, (I32, [16, 24])),
        "llama.attention.head_count_kv": None,
    }
    spec = spec_of(tmp_path, keys)
    assert [layer.ffn.width for layer in spec.layers] == [16, 24]
    assert [layer.attention.kv_heads for layer in spec.layers] == [2, 2]


def test_biases_and_untied_output_are_seen(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, shapes={"blk.1.attn_k.bias": (8,), "output.weight": (8, len(WORDS))})
    assert [layer.attention.bias for layer in spec.layers] == [False, True]
    assert not spec.tied_output


DENSE = [name for name, family in FAMILIES.items() if not family.mla]


@pytest.mark.parametrize("architecture", DENSE)
def test_each_family_has_its_rope_and_norms(tmp_path: Path, architecture: str) -> None:
    family = FAMILIES[architecture]
    attention = spec_of(tmp_path, renamed(architecture)).layers[0].attention
    norms = "none" if family.qk_norm == "optional" else family.qk_norm
    assert (attention.rope.kind, attention.qk_norm, attention.sinks) == (family.rope, norms, family.sinks)


def test_partial_rope_only_where_the_family_has_it(tmp_path: Path) -> None:
    partial = renamed("qwen2") | {"qwen2.rope.dimension_count": (U32, 2)}
    assert spec_of(tmp_path, partial).layers[0].attention.rope.dims == 2
    with pytest.raises(ModelFileError, match=r"'llama\.rope\.dimension_count' is 2, expected the key length 4"):
        spec_of(tmp_path, {"llama.rope.dimension_count": (U32, 2)})


@pytest.mark.parametrize("value", [None, (U32, 0), (STRING, "x"), (U32, 4_000_000_000)])
def test_unusable_context_lengths_are_derived_with_a_warning(tmp_path: Path, value: Any) -> None:
    spec = spec_of(tmp_path, {"llama.context_length": value})
    assert spec.context == 4096
    assert "4096 tokens are assumed" in spec.warnings[0]
    original = {"llama.context_length": value, "llama.rope.scaling.original_context_length": (U32, 64)}
    assert spec_of(tmp_path, original).context == 64


REQUIRED = [
    "general.architecture",
    "llama.block_count",
    "llama.embedding_length",
    "llama.feed_forward_length",
    "llama.attention.head_count",
    "llama.attention.layer_norm_rms_epsilon",
]


@pytest.mark.parametrize("key", REQUIRED)
def test_missing_keys_are_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        spec_of(tmp_path, {key: None})
    assert f"Key '{key}' is missing, expected" in caught.value.why


WRONG: list[tuple[str, Any, str]] = [
    ("llama.block_count", (U32, 0), "from 1 to 4096"),
    ("llama.block_count", (U32, 1 << 30), "from 1 to 4096"),
    ("llama.block_count", (BOOL, True), "is True"),
    ("llama.embedding_length", (STRING, "8"), "is '8'"),
    ("llama.attention.head_count", (I32, -2), "is -2"),
    ("llama.attention.head_count_kv", (ARRAY, (I32, [1])), "one per layer (2)"),
    ("llama.attention.head_count_kv", (ARRAY, (I32, [1, 0])), "is 0"),
    ("llama.attention.head_count_kv", (U32, 3), "a divisor of the 2 query heads"),
    ("llama.attention.layer_norm_rms_epsilon", (F32, float("nan")), "a finite number"),
    ("llama.attention.layer_norm_rms_epsilon", (F32, 0.0), "between 0 and 1"),
    ("llama.attention.key_length", (U32, 1 << 20), "from 1 to 65536"),
    ("llama.rope.freq_base", (F32, 0.5), "a number above 1"),
    ("llama.rope.scaling.factor", (F32, -1.0), "a positive number"),
    ("llama.rope.scaling.type", (U32, 3), "a string"),
]


@pytest.mark.parametrize(("key", "value", "expected"), WRONG)
def test_wrong_values_are_named(tmp_path: Path, key: str, value: Any, expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        spec_of(tmp_path, {key: value})
    assert f"Key '{key}'" in caught.value.why
    assert expected in caught.value.why


def test_odd_head_sizes_cannot_rotate(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="even number"):
        spec_of(tmp_path, {"llama.attention.key_length": (U32, 5)})


def test_unknown_architectures_name_the_supported_ones(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="'mamba' is not supported; supported: llama"):
        spec_of(tmp_path, {"general.architecture": (STRING, "mamba")})


def test_experts_only_where_the_family_has_them(tmp_path: Path) -> None:
    experts = {"qwen2.expert_count": (U32, 8)}
    with pytest.raises(ModelFileError, match=r"'qwen2\.expert_count' is 8, expected 0: qwen2 models have no"):
        spec_of(tmp_path, renamed("qwen2") | experts)


def mixture(architecture: str, **keys: Any) -> dict[str, Any]:
    """The tiny model's keys as a mixture of 6 experts with 2 used, and more keys of this architecture."""
    base = {"expert_count": (U32, 6), "expert_used_count": (U32, 2)} | keys
    return renamed(architecture) | {f"{architecture}.{key}": value for key, value in base.items()}


ROUTING: list[tuple[str, dict[str, Any], ExpertSpec]] = [
    ("llama", {}, ExpertSpec(6, 2, "softmax", normalise=True)),
    ("qwen2moe", {}, ExpertSpec(6, 2, "softmax", shared_gate=True)),
    ("qwen3moe", {}, ExpertSpec(6, 2, "softmax", normalise=True)),
    ("olmoe", {}, ExpertSpec(6, 2, "softmax")),
    ("gpt-oss", {}, ExpertSpec(6, 2, "softmax_chosen", biases=True)),
    (
        "glm4moe",
        {"expert_weights_scale": (F32, 1.5), "expert_weights_norm": (BOOL, True), "expert_shared_count": (U32, 2)},
        ExpertSpec(6, 2, "sigmoid", normalise=True, scale=1.5, shared_width=16),
    ),
    (
        "glm4moe",
        {"expert_gating_func": (U32, 4), "expert_group_count": (U32, 3), "expert_group_used_count": (U32, 1)},
        ExpertSpec(6, 2, "sqrt_softplus", groups=3, groups_used=1),
    ),
]


@pytest.mark.parametrize(("architecture", "keys", "expected"), ROUTING)
def test_routing_of_families(tmp_path: Path, architecture: str, keys: dict[str, Any], expected: ExpertSpec) -> None:
    ffn = spec_of(tmp_path, mixture(architecture, **keys)).layers[1].ffn
    width = 16 if FAMILIES[architecture].experts.width == "feed_forward_length" else 8  # type: ignore[union-attr]
    assert (ffn.kind, ffn.width, ffn.experts) == ("moe", width, expected)


def test_leading_layers_are_dense_and_extra_layers_are_left_out(tmp_path: Path) -> None:
    keys = mixture("glm4moe", leading_dense_block_count=(U32, 1), expert_feed_forward_length=(U32, 5))
    spec = spec_of(tmp_path, keys)
    assert [(layer.ffn.kind, layer.ffn.width) for layer in spec.layers] == [("dense", 16), ("moe", 5)]
    spec = spec_of(tmp_path, keys | {"glm4moe.nextn_predict_layers": (U32, 1)})
    assert (len(spec.layers), spec.skipped_layers) == (1, 1)


BAD_ROUTING: list[tuple[str, Any, str]] = [
    ("expert_used_count", (U32, 7), "from 1 to 6"),
    ("expert_used_count", None, "is missing"),
    ("expert_gating_func", (U32, 9), "1 softmax"),
    ("expert_group_count", (U32, 4), "a divisor of the 6 experts"),
    ("expert_weights_norm", (U32, 1), "true or false"),
]


@pytest.mark.parametrize(("key", "value", "expected"), BAD_ROUTING)
def test_wrong_routing_is_named(tmp_path: Path, key: str, value: Any, expected: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        spec_of(tmp_path, mixture("glm4moe", **{key: value}))
    assert f"'glm4moe.{key}'" in caught.value.why
    assert expected in caught.value.why


PATTERNS: list[tuple[str, dict[str, Any], list[int]]] = [
    ("gemma3", {}, [5, 5]),
    ("gemma3", {"attention.sliding_window_pattern": (U32, 2)}, [5, 0]),
    ("gemma3", {"attention.sliding_window_pattern": (ARRAY, (BOOL, [False, True]))}, [0, 5]),
    ("gpt-oss", {}, [5, 0]),
    ("llama", {}, [0, 0]),
]


@pytest.mark.parametrize(("architecture", "keys", "windows"), PATTERNS)
def test_window_patterns(tmp_path: Path, architecture: str, keys: dict[str, Any], windows: list[int]) -> None:
    more = {"attention.sliding_window": (U32, 5)} | keys
    prefixed = {f"{architecture}.{key}": value for key, value in more.items()}
    spec = spec_of(tmp_path, renamed(architecture) | prefixed)
    assert [layer.attention.window for layer in spec.layers] == windows
    kinds = ["window" if window else "full" for window in windows]
    assert [layer.attention.kind for layer in spec.layers] == kinds


def test_local_layers_of_gemma_have_their_own_unscaled_rope(tmp_path: Path) -> None:
    keys = renamed("gemma3") | {
        "gemma3.attention.sliding_window": (U32, 5),
        "gemma3.attention.sliding_window_pattern": (U32, 2),
        "gemma3.rope.freq_base": (F32, 1e6),
        "gemma3.rope.scaling.type": (STRING, "linear"),
        "gemma3.rope.scaling.factor": (F32, 8.0),
    }
    local, full = (layer.attention.rope.inv_freq for layer in spec_of(tmp_path, keys).layers)
    assert local == pytest.approx((1.0, 0.01))
    assert full == pytest.approx((0.125, 0.000125))


def test_scales_of_granite_and_gemma(tmp_path: Path) -> None:
    scales = {"attention.scale": 0.3, "embedding_scale": 12.0, "residual_scale": 0.2, "logit_scale": 8.0}
    spec = spec_of(tmp_path, renamed("granite") | {f"granite.{key}": (F32, x) for key, x in scales.items()})
    found = spec.layers[0].attention.scale, spec.embedding_scale, spec.residual_scale, spec.logit_scale
    assert found == pytest.approx((0.3, 12.0, 0.2, 0.125))
    assert spec_of(tmp_path, renamed("gemma3")).embedding_scale == pytest.approx(8**0.5)


def test_latent_attention_in_both_file_forms() -> None:
    specs = []
    for name in ("ds2-lite-mini", "ds2-v3-mini"):
        with GgufFile.open(DATA / "models" / f"{name}.gguf") as file:
            specs.append(spec_from_gguf(file).layers[1])
    lite, v3 = (layer.attention for layer in specs)
    assert lite.mla == MlaSpec(kv_lora=32, nope=16, rope=8, value_dim=24)
    assert v3.mla == MlaSpec(kv_lora=32, nope=16, rope=8, value_dim=24, q_lora=48)
    for a in (lite, v3):
        assert (a.kv_heads, a.head_dim_k, a.head_dim_v, a.mixed_dim) == (1, 40, 0, 24)
    assert lite.scale == pytest.approx((1 + 0.0707 * math.log(4)) ** 2 / 24**0.5)
    assert specs[1].ffn.experts == ExpertSpec(16, 4, "sigmoid", True, 2.5, 4, 2, shared_width=32)


def test_unknown_rope_scaling_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="'dynamic' is not supported; supported: none, linear, yarn, longrope"):
        spec_of(tmp_path, {"llama.rope.scaling.type": (STRING, "dynamic")})


def test_specs_of_stored_models() -> None:
    with GgufFile.open(DATA / "models" / "qwen3-f32.gguf") as file:
        spec = spec_from_gguf(file)
    assert (spec.architecture, len(spec.layers), spec.vocabulary) == ("qwen3", 3, 1024)
    assert (spec.layers[0].attention.head_dim_k, spec.layers[0].attention.qk_norm) == (32, "head")


def test_head_sizes_that_follow_from_an_absurd_width_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"'llama\.attention\.key_length' is 587202564, expected an integer"):
        spec_of(tmp_path, {"llama.embedding_length": (U32, 1174405128)})
