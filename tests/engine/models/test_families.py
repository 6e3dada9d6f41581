"""ModelSpec from GGUF keys: what is read, what is derived, and each refusal by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile
from engine.models.families import FAMILIES, spec_from_gguf
from engine.models.spec import ModelSpec, RopeKind
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
    assert (spec.architecture, spec.name, spec.vocabulary) == ("llama", "Tiny", len(WORDS))
    assert (spec.channels, spec.context, spec.tied_output, spec.warnings) == (8, 32, True, ())
    assert spec.norm_eps == pytest.approx(1e-5)
    assert [layer.index for layer in spec.layers] == [0, 1]
    assert [(x.attention.heads, x.attention.kv_heads) for x in spec.layers] == [(2, 1), (2, 2)]
    attention = spec.layers[0].attention
    assert (attention.head_dim_k, attention.head_dim_v, attention.scale) == (4, 4, 0.5)
    assert (attention.rope.kind, attention.rope.dims) == (RopeKind.NORM, 4)
    assert attention.rope.inv_freq == pytest.approx((1.0, 0.01))
    assert (attention.bias, attention.qk_norm) == (False, False)
    assert [layer.ffn.width for layer in spec.layers] == [16, 16]


def test_values_per_layer_and_defaults(tmp_path: Path) -> None:
    keys: Changes = {
        "llama.feed_forward_length": (ARRAY, (I32, [16, 24])),
        "llama.attention.head_count_kv": None,
        "general.name": None,
    }
    spec = spec_of(tmp_path, keys)
    assert [layer.ffn.width for layer in spec.layers] == [16, 24]
    assert [layer.attention.kv_heads for layer in spec.layers] == [2, 2]
    assert spec.name == "tiny"


def test_biases_and_untied_output_are_seen(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, shapes={"blk.1.attn_k.bias": (8,), "output.weight": (8, len(WORDS))})
    assert [layer.attention.bias for layer in spec.layers] == [False, True]
    assert not spec.tied_output


def test_each_family_has_its_rope_and_norms(tmp_path: Path) -> None:
    for architecture, family in FAMILIES.items():
        attention = spec_of(tmp_path, renamed(architecture)).layers[0].attention
        assert (attention.rope.kind, attention.qk_norm) == (family.rope, family.qk_norm)


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


def test_experts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=r"mixture of experts \(8 experts\)"):
        spec_of(tmp_path, {"llama.expert_count": (U32, 8)})
    with pytest.raises(UnsupportedModel, match="mixture of experts"):
        spec_of(tmp_path, shapes={"blk.0.ffn_gate_inp.weight": (8, 4)})


def test_unknown_rope_scaling_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match="'longrope' is not supported; supported: none, linear, yarn"):
        spec_of(tmp_path, {"llama.rope.scaling.type": (STRING, "longrope")})


def test_specs_of_stored_models() -> None:
    with GgufFile.open(DATA / "models" / "qwen3-f32.gguf") as file:
        spec = spec_from_gguf(file)
    assert (spec.architecture, len(spec.layers), spec.vocabulary) == ("qwen3", 3, 1024)
    assert (spec.layers[0].attention.head_dim_k, spec.layers[0].attention.qk_norm) == (32, True)
