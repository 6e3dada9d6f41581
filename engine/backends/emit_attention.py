"""Attention blocks as native instructions: grouped queries, and latent attention (MLA)."""

from __future__ import annotations

from engine.backends.emitter import Emitter
from engine.gguf import TensorInfo
from engine.models.spec import AttentionSpec, LayerSpec, MlaSpec, RopeKind
from engine.models.tensors import AttentionTensors, LayerTensors, MlaTensors
from kernels.program import Attention, HeadNorm, KvWrite, MlaAttention, RmsNorm, Rope


def emit_attention(emitter: Emitter, layer: LayerSpec, weights: LayerTensors) -> None:
    """From the stream back into it."""
    x, attention = emitter.normed_stream(weights.attn_norm), weights.attention
    if isinstance(attention, MlaTensors):
        assert layer.attention.mla is not None
        mixed, bias = _latent(emitter, layer, layer.attention.mla, attention, x), None
    else:
        mixed, bias = _grouped(emitter, layer, attention, x), attention.o_bias
    emitter.into_stream(mixed, attention.o, bias, weights.post_attention_norm)


def _grouped(emitter: Emitter, layer: LayerSpec, weights: AttentionTensors, x: int) -> int:
    a = layer.attention
    q = emitter.linear("q", x, weights.q, weights.q_bias)
    k = emitter.linear("k", x, weights.k, weights.k_bias)
    v = emitter.linear("v", x, weights.v, weights.v_bias)
    _qk_norm(emitter, a, q, a.heads, weights.q_norm)
    _qk_norm(emitter, a, k, a.kv_heads, weights.k_norm)
    _rotate(emitter, a, q, k)
    emitter.code.append(KvWrite(k, v, layer.index))
    mixed = q if a.head_dim_v == a.head_dim_k else emitter.buffer("mixed", a.heads * a.head_dim_v)
    window = a.window if a.kind == "window" else 0
    sinks = emitter.optional(weights.sinks)
    emitter.code.append(Attention(mixed, q, layer.index, a.heads, a.scale, window, a.softcap, sinks))
    return mixed


def _qk_norm(emitter: Emitter, a: AttentionSpec, buffer: int, heads: int, weight: TensorInfo | None) -> None:
    if weight is None:
        return
    index, eps = emitter.vector(weight), emitter.spec.norm_eps
    if a.qk_norm == "whole":
        emitter.code.append(RmsNorm(buffer, buffer, index, eps))
    else:
        emitter.code.append(HeadNorm(buffer, index, heads, a.head_dim_k, eps))


def _rotate(emitter: Emitter, a: AttentionSpec, q: int, k: int) -> None:
    if a.rope.kind is not RopeKind.NONE:
        rope = emitter.rope(a.rope)
        emitter.code.append(Rope(q, a.heads, a.head_dim_k, rope))
        emitter.code.append(Rope(k, a.kv_heads, a.head_dim_k, rope))


def _latent(emitter: Emitter, layer: LayerSpec, mla: MlaSpec, weights: MlaTensors, x: int) -> int:
    a, rope, head = layer.attention, emitter.rope(layer.attention.rope), mla.nope + mla.rope
    q = emitter.linear("q", _low_rank_q(emitter, weights, x), weights.q)
    emitter.code.append(Rope(q, a.heads, head, rope, first=mla.nope))
    kv = emitter.linear("k", x, weights.kv_a)
    norm, eps = emitter.vector(weights.kv_a_norm), emitter.spec.norm_eps
    emitter.code.append(HeadNorm(kv, norm, 1, a.head_dim_k, eps, dims=mla.kv_lora))
    emitter.code.append(Rope(kv, 1, a.head_dim_k, rope, first=mla.kv_lora))
    emitter.code.append(KvWrite(kv, -1, layer.index))
    mixed = emitter.buffer("mixed", a.heads * mla.value_dim)
    emitter.code.append(
        MlaAttention(
            mixed,
            q,
            layer.index,
            a.heads,
            a.scale,
            kv_lora=mla.kv_lora,
            nope=mla.nope,
            value_dim=mla.value_dim,
            k_b=emitter.weights(weights.k_b),
            v_b=emitter.weights(weights.v_b),
            k_transposed=weights.k_transposed,
        )
    )
    return mixed


def _low_rank_q(emitter: Emitter, weights: MlaTensors, x: int) -> int:
    if weights.q_a is None or weights.q_a_norm is None:
        return x
    low = emitter.linear("q_low", x, weights.q_a)
    out = emitter.buffer("q_low_normed", weights.q_a.rows)
    emitter.code.append(RmsNorm(out, low, emitter.vector(weights.q_a_norm), emitter.spec.norm_eps))
    return out
