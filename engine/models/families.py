"""The ModelSpec of a GGUF file, by the table of model families (key names: llama.cpp's converter)."""

from __future__ import annotations

import math
from typing import NoReturn

from engine.errors import UnsupportedModel
from engine.gguf import GgufFile, MetadataArray
from engine.models.attention import AttentionReader
from engine.models.family import FAMILIES, Family
from engine.models.ffn import FfnReader
from engine.models.keys import Keys
from engine.models.naming import readable_name, title_of
from engine.models.spec import LayerSpec, ModelSpec

__all__ = ["FAMILIES", "Family", "spec_from_gguf"]

_MAX_LAYERS = 4096
_MAX_CONTEXT = 1 << 26
_FALLBACK_CONTEXT = 4096


def spec_from_gguf(gguf: GgufFile, reach: int = 0) -> ModelSpec:
    """Reads the model's shape from the metadata. `reach`: the context to run with where it is not the model's own, it
    decides between LongRoPE's factors. UnsupportedModel: unknown architecture; ModelFileError: a key that
    is missing or out of range, by name."""
    family = _family(gguf)
    keys = Keys(gguf, family.architecture)
    context, warnings = _context(keys)
    channels, vocabulary = keys.integer("embedding_length"), _vocabulary(gguf, keys)
    scale = keys.number if family.scales else _one
    return ModelSpec(
        architecture=family.architecture,
        name=readable_name(gguf.path, title_of(gguf.metadata.get("general.name"))),
        vocabulary=vocabulary,
        channels=channels,
        context=context,
        norm_eps=_norm_eps(keys),
        layers=_layers(gguf, family, keys, context, min(reach or context, context), vocabulary),
        tied_output="output.weight" not in gguf.tensors,
        embedding_scale=math.sqrt(channels) if family.embedding_sqrt else scale("embedding_scale", 0.0) or 1.0,
        residual_scale=scale("residual_scale", 0.0) or 1.0,
        logit_scale=1.0 / (scale("logit_scale", 0.0) or 1.0),
        logit_softcap=keys.number("final_logit_softcapping", 0.0),
        skipped_layers=_skipped(keys),
        warnings=warnings,
    )


def _one(suffix: str, default: float) -> float:
    return 1.0


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


def _skipped(keys: Keys) -> int:
    """Layers for predicting further tokens come last and are left out; `block_count` counts them."""
    return keys.integer("nextn_predict_layers", 0, low=0, high=keys.integer("block_count", high=_MAX_LAYERS) - 1)


def _layers(
    gguf: GgufFile, family: Family, keys: Keys, context: int, reach: int, vocabulary: int
) -> tuple[LayerSpec, ...]:
    count = keys.integer("block_count", high=_MAX_LAYERS) - _skipped(keys)
    heads = keys.per_layer("attention.head_count", count)
    kv_heads = keys.per_layer("attention.head_count_kv", count, heads)
    attention = AttentionReader(gguf, family, keys, context, reach, heads, kv_heads).layers()
    ffn = FfnReader(gguf, family, keys, count, vocabulary).tables()
    return tuple(LayerSpec(i, attention[i], ffn[i], family.post_norms) for i in range(count))
