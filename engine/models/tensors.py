"""Which GGUF tensors a decoder needs: a ModelSpec bound to a file, checked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from engine.errors import UnsupportedModel
from engine.gguf import GGML_TYPES, GgufFile, TensorInfo
from engine.gguf.dequantise import DEQUANTISED_TYPES
from engine.models.binder import Binder
from engine.models.ffn_tensors import DenseTensors, MoeTensors, bind_ffn
from engine.models.spec import AttentionSpec, LayerSpec, MlaSpec, ModelSpec

# No weights of the decoder proper: rope factors are read with the spec, input scales are for devices that round
# activations to 4 bits, the rest is obsolete.
_PASSIVE = re.compile(
    r"rope_(freqs|factors_long|factors_short)\.weight|(blk\.\d+\.)?attn_rot_embd\.weight"
    r"|blk\.\d+\.attn\.rotary_emb\.inv_freq|.+\.input_scale"
)
_BLOCK = re.compile(r"blk\.(\d+)\.")


@dataclass(frozen=True)
class AttentionTensors:
    """Matrices have shape (inputs, outputs); q, k, v may be row ranges of one fused tensor."""

    q: TensorInfo
    k: TensorInfo
    v: TensorInfo
    o: TensorInfo
    q_bias: TensorInfo | None = None
    k_bias: TensorInfo | None = None
    v_bias: TensorInfo | None = None
    o_bias: TensorInfo | None = None
    q_norm: TensorInfo | None = None
    k_norm: TensorInfo | None = None
    sinks: TensorInfo | None = None


@dataclass(frozen=True)
class MlaTensors:
    """Latent attention. `q_a` and its norm: None where q is one product (then `q`).

    Per head h, with c the latent vector: k_nope = k_b[h] c, value = v_b[h] c. `k_b[h]` is [nope rows, kv_lora], or with
    `k_transposed` [kv_lora rows, nope].
    """

    q: TensorInfo
    q_a: TensorInfo | None
    q_a_norm: TensorInfo | None
    kv_a: TensorInfo
    kv_a_norm: TensorInfo
    k_b: tuple[TensorInfo, ...]
    v_b: tuple[TensorInfo, ...]
    k_transposed: bool
    o: TensorInfo


@dataclass(frozen=True)
class LayerTensors:
    attn_norm: TensorInfo
    attention: AttentionTensors | MlaTensors
    ffn_norm: TensorInfo
    ffn: DenseTensors | MoeTensors
    post_attention_norm: TensorInfo | None = None
    post_ffn_norm: TensorInfo | None = None


@dataclass(frozen=True)
class ModelTensors:
    """`output` is `token_embd` where the file ties them. Vectors (norms, biases) are F32, F16 or BF16."""

    token_embd: TensorInfo
    output_norm: TensorInfo
    output: TensorInfo
    layers: tuple[LayerTensors, ...]


def bind(gguf: GgufFile, spec: ModelSpec, types: Collection[int] = GGML_TYPES) -> ModelTensors:
    """The tensors of every block. ModelFileError: one is missing or has another shape than the keys say;
    UnsupportedModel: one has a type outside `types` (ids that the backend can compute with)."""
    return _bind(Binder(gguf, types), spec)


def check_tensors(gguf: GgufFile, spec: ModelSpec, types: Collection[int] = DEQUANTISED_TYPES) -> None:
    """Raises as `bind` does, and UnsupportedModel for a tensor that this family does not know: a model that
    was computed without it would answer wrongly."""
    binder = Binder(gguf, types)
    _bind(binder, spec)
    for name in gguf.tensors:
        if name not in binder.used and not _PASSIVE.fullmatch(name) and not _beyond(name, spec):
            raise _unknown(gguf, name, spec)


def _unknown(gguf: GgufFile, name: str, spec: ModelSpec) -> UnsupportedModel:
    return UnsupportedModel(
        f"The model file {gguf.path.name} cannot be used.",
        f"Tensor {name!r} is not part of a {spec.architecture} model as supported here.",
        "Choose another model.",
    )


def _beyond(name: str, spec: ModelSpec) -> bool:
    """Whether the tensor belongs to a layer that predicts further tokens, behind the last of the main model."""
    block = _BLOCK.match(name)
    main = len(spec.layers)
    return block is not None and main <= int(block[1]) < main + spec.skipped_layers


def _bind(binder: Binder, spec: ModelSpec) -> ModelTensors:
    embd = binder.unscaled("token_embd.weight", spec.channels, spec.vocabulary)
    output = embd if spec.tied_output else binder.matrix("output.weight", spec.channels, spec.vocabulary)
    return ModelTensors(
        token_embd=embd,
        output_norm=binder.vector("output_norm.weight", spec.channels),
        output=output,
        layers=tuple(_layer(binder, spec.channels, layer) for layer in spec.layers),
    )


def _layer(binder: Binder, channels: int, layer: LayerSpec) -> LayerTensors:
    at, post = f"blk.{layer.index}.", layer.post_norms
    mla = layer.attention.mla
    return LayerTensors(
        attn_norm=binder.vector(f"{at}attn_norm.weight", channels),
        attention=_attention(binder, at, channels, layer.attention)
        if mla is None
        else _latent(binder, at, channels, layer.attention.heads, mla),
        ffn_norm=binder.vector(_ffn_norm(binder, at, post), channels),
        ffn=bind_ffn(binder, at, channels, layer.ffn),
        post_attention_norm=binder.vector(f"{at}post_attention_norm.weight", channels) if post else None,
        post_ffn_norm=binder.vector(f"{at}post_ffw_norm.weight", channels) if post else None,
    )


def _ffn_norm(binder: Binder, at: str, post_norms: bool) -> str:
    """Without post-norms, some families' files call the norm before the feed-forward part by the other name."""
    other = f"{at}post_attention_norm.weight"
    return other if not post_norms and binder.has(other) else f"{at}ffn_norm.weight"


def _attention(binder: Binder, at: str, channels: int, a: AttentionSpec) -> AttentionTensors:
    q, k, v, biases = _qkv(binder, at, channels, a)
    q_norm, k_norm = _qk_norms(binder, at, a)
    return AttentionTensors(
        q=q,
        k=k,
        v=v,
        o=binder.matrix(f"{at}attn_output.weight", a.heads * a.head_dim_v, channels),
        q_bias=biases[0],
        k_bias=biases[1],
        v_bias=biases[2],
        o_bias=binder.optional(f"{at}attn_output.bias", channels),
        q_norm=q_norm,
        k_norm=k_norm,
        sinks=binder.vector(f"{at}attn_sinks.weight", a.heads) if a.sinks else None,
    )


def _qk_norms(binder: Binder, at: str, a: AttentionSpec) -> tuple[TensorInfo | None, TensorInfo | None]:
    if a.qk_norm == "none":
        return None, None
    heads, kv_heads = (a.heads, a.kv_heads) if a.qk_norm == "whole" else (1, 1)
    return (
        binder.vector(f"{at}attn_q_norm.weight", heads * a.head_dim_k),
        binder.vector(f"{at}attn_k_norm.weight", kv_heads * a.head_dim_k),
    )


_Biases = tuple[TensorInfo | None, TensorInfo | None, TensorInfo | None]


def _qkv(
    binder: Binder, at: str, channels: int, a: AttentionSpec
) -> tuple[TensorInfo, TensorInfo, TensorInfo, _Biases]:
    sizes = (a.heads * a.head_dim_k, a.kv_heads * a.head_dim_k, a.kv_heads * a.head_dim_v)
    if binder.has(f"{at}attn_qkv.weight"):
        return _fused_qkv(binder, at, channels, sizes)
    q, k, v = (
        binder.matrix(f"{at}attn_{part}.weight", channels, rows) for part, rows in zip("qkv", sizes, strict=True)
    )
    b_q, b_k, b_v = (binder.optional(f"{at}attn_{part}.bias", rows) for part, rows in zip("qkv", sizes, strict=True))
    return q, k, v, (b_q, b_k, b_v)


def _fused_qkv(
    binder: Binder, at: str, channels: int, sizes: tuple[int, int, int]
) -> tuple[TensorInfo, TensorInfo, TensorInfo, _Biases]:
    """Rows of attn_qkv are q, then k, then v."""
    whole = binder.matrix(f"{at}attn_qkv.weight", channels, sum(sizes))
    starts = (0, sizes[0], sizes[0] + sizes[1])
    q, k, v = (whole.part(start, rows) for start, rows in zip(starts, sizes, strict=True))
    bias = binder.optional(f"{at}attn_qkv.bias", sum(sizes))
    if bias is None:
        return q, k, v, (None, None, None)
    b_q, b_k, b_v = (bias.elements(start, rows) for start, rows in zip(starts, sizes, strict=True))
    return q, k, v, (b_q, b_k, b_v)


def _latent(binder: Binder, at: str, channels: int, heads: int, mla: MlaSpec) -> MlaTensors:
    rows = heads * (mla.nope + mla.rope)
    low = mla.q_lora
    k_b, v_b, transposed = _latent_heads(binder, at, heads, mla)
    return MlaTensors(
        q=binder.matrix(f"{at}attn_q_b.weight" if low else f"{at}attn_q.weight", low or channels, rows),
        q_a=binder.matrix(f"{at}attn_q_a.weight", channels, low) if low else None,
        q_a_norm=binder.vector(f"{at}attn_q_a_norm.weight", low) if low else None,
        kv_a=binder.matrix(f"{at}attn_kv_a_mqa.weight", channels, mla.kv_lora + mla.rope),
        kv_a_norm=binder.vector(f"{at}attn_kv_a_norm.weight", mla.kv_lora),
        k_b=k_b,
        v_b=v_b,
        k_transposed=transposed,
        o=binder.matrix(f"{at}attn_output.weight", heads * mla.value_dim, channels),
    )


def _latent_heads(
    binder: Binder, at: str, heads: int, mla: MlaSpec
) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...], bool]:
    """Two tensors, or one (attn_kv_b) whose rows are head by head those of k and then those of the value."""
    if binder.has(f"{at}attn_k_b.weight"):
        keys = binder.unscaled(f"{at}attn_k_b.weight", mla.nope, mla.kv_lora, heads)
        values = binder.unscaled(f"{at}attn_v_b.weight", mla.kv_lora, mla.value_dim, heads)
        return keys.stacked(heads), values.stacked(heads), True
    both = mla.nope + mla.value_dim
    whole = binder.unscaled(f"{at}attn_kv_b.weight", mla.kv_lora, heads * both)
    k_b = tuple(whole.part(h * both, mla.nope) for h in range(heads))
    return k_b, tuple(whole.part(h * both + mla.nope, mla.value_dim) for h in range(heads)), False
