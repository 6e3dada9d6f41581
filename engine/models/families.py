"""The table of model families, and the ModelSpec of a GGUF file (key names: llama.cpp's converter)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import NoReturn

from engine.errors import UnsupportedModel
from engine.gguf import GgufFile, MetadataArray
from engine.models.keys import Keys
from engine.models.rope import rope_spec
from engine.models.spec import AttentionSpec, FfnSpec, LayerSpec, ModelSpec, RopeKind

_MAX_LAYERS = 4096
_MAX_CONTEXT = 1 << 26
_FALLBACK_CONTEXT = 4096


@dataclass(frozen=True)
class Family:
    """What a family's files do not say by themselves.

    `whole_rope`: all channels of a head must be rotated; `qk_norm`: per-head norms of q and k are required.
    """

    architecture: str
    title: str
    rope: RopeKind
    whole_rope: bool = False
    qk_norm: bool = False


FAMILIES = MappingProxyType(
    {
        family.architecture: family
        for family in (
            Family("llama", "Llama, Mistral, SmolLM", RopeKind.NORM, whole_rope=True),
            Family("qwen2", "Qwen 2 and 2.5", RopeKind.NEOX),
            Family("qwen3", "Qwen 3", RopeKind.NEOX, qk_norm=True),
        )
    }
)


def spec_from_gguf(gguf: GgufFile) -> ModelSpec:
    """Reads the model's shape from the metadata. UnsupportedModel: unknown architecture, or a mixture of
    experts; ModelFileError: a key that is missing or out of range, by name."""
    family = _family(gguf)
    keys = Keys(gguf, family.architecture)
    _refuse_experts(gguf, keys)
    context, warnings = _context(keys)
    return ModelSpec(
        architecture=family.architecture,
        name=_name(gguf),
        vocabulary=_vocabulary(gguf, keys),
        channels=keys.integer("embedding_length"),
        context=context,
        norm_eps=_norm_eps(keys),
        layers=_layers(gguf, family, keys, context),
        tied_output="output.weight" not in gguf.tensors,
        warnings=warnings,
    )


def _refuse(gguf: GgufFile, why: str) -> NoReturn:
    raise UnsupportedModel(f"The model file {gguf.path.name} cannot be used.", why, "Choose another model.")


def _family(gguf: GgufFile) -> Family:
    architecture = gguf.metadata.get("general.architecture")
    if not isinstance(architecture, str):
        Keys(gguf, "general").fail("architecture", architecture, "the name of an architecture")
    if architecture not in FAMILIES:
        _refuse(
            gguf,
            f"Architecture {architecture!r} is not supported; supported: {', '.join(FAMILIES)}.",
        )
    return FAMILIES[architecture]


def _refuse_experts(gguf: GgufFile, keys: Keys) -> None:
    experts = keys.integer("expert_count", 0, low=0)
    if experts or any(name.endswith("ffn_gate_inp.weight") for name in gguf.tensors):
        _refuse(gguf, f"It is a mixture of experts ({experts} experts); only dense models are supported.")


def _name(gguf: GgufFile) -> str:
    name = gguf.metadata.get("general.name")
    return name if isinstance(name, str) and name.strip() else gguf.path.stem


def _vocabulary(gguf: GgufFile, keys: Keys) -> int:
    tokens = gguf.metadata.get("tokenizer.ggml.tokens")
    if isinstance(tokens, MetadataArray) and len(tokens):
        return len(tokens)
    return keys.integer("vocab_size")


def _context(keys: Keys) -> tuple[int, tuple[str, ...]]:
    """The context length; derived, with a warning, where the file's own is absent, zero or absurd."""
    value = keys.get("context_length")
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_CONTEXT:
        return value, ()
    derived = keys.integer("rope.scaling.original_context_length", _FALLBACK_CONTEXT, high=_MAX_CONTEXT)
    state = "no context length" if value is None else f"the context length {value!r}"
    return derived, (f"The model file states {state}; {derived} tokens are assumed.",)


def _norm_eps(keys: Keys) -> float:
    eps = keys.number("attention.layer_norm_rms_epsilon")
    if not 0 < eps < 1:
        keys.fail("attention.layer_norm_rms_epsilon", eps, "a number between 0 and 1")
    return eps


def _layers(gguf: GgufFile, family: Family, keys: Keys, context: int) -> tuple[LayerSpec, ...]:
    count = keys.integer("block_count", high=_MAX_LAYERS)
    heads = keys.per_layer("attention.head_count", count)
    kv_heads = keys.per_layer("attention.head_count_kv", count, heads)
    widths = keys.per_layer("feed_forward_length", count)
    shared = _shared_attention(gguf, family, keys, heads[0], context)
    return tuple(
        LayerSpec(i, _attention(gguf, keys, shared, i, heads[i], kv_heads[i]), FfnSpec("dense", widths[i]))
        for i in range(count)
    )


def _shared_attention(gguf: GgufFile, family: Family, keys: Keys, heads: int, context: int) -> AttentionSpec:
    """What all layers have in common, head sizes and rope; counts are those of layer 0."""
    channels = keys.integer("embedding_length")
    even = channels // heads if channels % heads == 0 else None
    key_dim = keys.integer("attention.key_length", even, high=1 << 16)
    dims = keys.integer("rope.dimension_count", key_dim, high=key_dim)
    if family.whole_rope and dims != key_dim:
        keys.fail("rope.dimension_count", dims, f"the key length {key_dim}")
    return AttentionSpec(
        kind="full",
        heads=heads,
        kv_heads=heads,
        head_dim_k=key_dim,
        head_dim_v=keys.integer("attention.value_length", even, high=1 << 16),
        scale=key_dim**-0.5,
        rope=rope_spec(gguf, keys, family.rope, dims, context),
        qk_norm=family.qk_norm,
    )


def _attention(
    gguf: GgufFile, keys: Keys, shared: AttentionSpec, layer: int, heads: int, kv_heads: int
) -> AttentionSpec:
    if heads % kv_heads:
        keys.fail("attention.head_count_kv", kv_heads, f"a divisor of the {heads} query heads")
    names = (f"blk.{layer}.attn_{part}.bias" for part in ("q", "k", "v", "qkv"))
    return AttentionSpec(
        shared.kind,
        heads,
        kv_heads,
        shared.head_dim_k,
        shared.head_dim_v,
        shared.scale,
        shared.rope,
        qk_norm=shared.qk_norm,
        bias=any(name in gguf.tensors for name in names),
    )
