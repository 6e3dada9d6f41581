"""Which GGUF tensors a decoder needs: a ModelSpec bound to a file, checked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import NoReturn

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GGML_TYPES, GgufFile, TensorInfo, type_name
from engine.gguf.dequantise import DEQUANTISED_TYPES
from engine.models.spec import AttentionSpec, LayerSpec, ModelSpec

_F32 = 0
# No weights of the decoder proper: rope factors are read with the spec, the rest is obsolete.
_PASSIVE = re.compile(r"rope_freqs\.weight|(blk\.\d+\.)?attn_rot_embd\.weight|blk\.\d+\.attn\.rotary_emb\.inv_freq")


@dataclass(frozen=True)
class LayerTensors:
    """One layer. Matrices have shape (inputs, outputs); q, k, v may be row ranges of one fused tensor."""

    attn_norm: TensorInfo
    q: TensorInfo
    k: TensorInfo
    v: TensorInfo
    o: TensorInfo
    ffn_norm: TensorInfo
    gate: TensorInfo
    up: TensorInfo
    down: TensorInfo
    q_bias: TensorInfo | None = None
    k_bias: TensorInfo | None = None
    v_bias: TensorInfo | None = None
    o_bias: TensorInfo | None = None
    q_norm: TensorInfo | None = None
    k_norm: TensorInfo | None = None
    gate_bias: TensorInfo | None = None
    up_bias: TensorInfo | None = None
    down_bias: TensorInfo | None = None


@dataclass(frozen=True)
class ModelTensors:
    """`output` is `token_embd` where the file ties them. Vectors (norms, biases) are F32."""

    token_embd: TensorInfo
    output_norm: TensorInfo
    output: TensorInfo
    layers: tuple[LayerTensors, ...]


class _Binder:
    """Looks tensors up by name and checks shape and type; remembers what was used."""

    def __init__(self, gguf: GgufFile, types: Collection[int]) -> None:
        self.gguf = gguf
        self.types = types
        self.used: set[str] = set()

    def fail(self, why: str) -> NoReturn:
        raise ModelFileError(
            f"The model file {self.gguf.path.name} cannot be used.",
            why,
            "Download or convert the file again.",
        )

    def matrix(self, name: str, cols: int, rows: int) -> TensorInfo:
        info = self._required(name, (cols, rows))
        if info.ggml_type not in self.types:
            self._refuse_type(info, ", ".join(type_name(t) for t in sorted(self.types)))
        return info

    def vector(self, name: str, length: int) -> TensorInfo:
        info = self._required(name, (length,))
        if info.ggml_type != _F32:
            self._refuse_type(info, "F32 for norms and biases")
        return info

    def optional(self, name: str, length: int) -> TensorInfo | None:
        return self.vector(name, length) if name in self.gguf.tensors else None

    def _required(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        info = self.gguf.tensors.get(name)
        if info is None:
            self.fail(f"Tensor {name!r} is missing, expected shape {list(shape)}.")
        if info.shape != shape:
            self.fail(f"Tensor {name!r} has shape {list(info.shape)}, expected {list(shape)}.")
        self.used.add(name)
        return info

    def _refuse_type(self, info: TensorInfo, expected: str) -> NoReturn:
        raise UnsupportedModel(
            f"The model file {self.gguf.path.name} cannot be used.",
            f"Tensor {info.name!r} has type {info.type_name}; supported: {expected}.",
            "Choose a file of the model with another quantisation.",
        )


def bind(gguf: GgufFile, spec: ModelSpec, types: Collection[int] = GGML_TYPES) -> ModelTensors:
    """The tensors of every block. ModelFileError: one is missing or has another shape than the keys say;
    UnsupportedModel: one has a type outside `types` (ids that the backend can compute with)."""
    return _bind(_Binder(gguf, types), spec)


def check_tensors(gguf: GgufFile, spec: ModelSpec, types: Collection[int] = DEQUANTISED_TYPES) -> None:
    """Raises as `bind` does, and UnsupportedModel for a tensor that this family does not know: a model that
    was computed without it would answer wrongly."""
    binder = _Binder(gguf, types)
    _bind(binder, spec)
    for name in gguf.tensors:
        if name not in binder.used and not _PASSIVE.fullmatch(name):
            raise UnsupportedModel(
                f"The model file {gguf.path.name} cannot be used.",
                f"Tensor {name!r} is not part of a {spec.architecture} model as supported here.",
                "Choose another model.",
            )


def _bind(binder: _Binder, spec: ModelSpec) -> ModelTensors:
    embd = binder.matrix("token_embd.weight", spec.channels, spec.vocabulary)
    output = embd if spec.tied_output else binder.matrix("output.weight", spec.channels, spec.vocabulary)
    return ModelTensors(
        token_embd=embd,
        output_norm=binder.vector("output_norm.weight", spec.channels),
        output=output,
        layers=tuple(_layer(binder, spec, layer) for layer in spec.layers),
    )


def _layer(binder: _Binder, spec: ModelSpec, layer: LayerSpec) -> LayerTensors:
    at, channels, width, attention = f"blk.{layer.index}.", spec.channels, layer.ffn.width, layer.attention
    q, k, v, biases = _qkv(binder, at, channels, attention)
    norms = attention.qk_norm
    return LayerTensors(
        attn_norm=binder.vector(f"{at}attn_norm.weight", channels),
        q=q,
        k=k,
        v=v,
        o=binder.matrix(f"{at}attn_output.weight", attention.heads * attention.head_dim_v, channels),
        ffn_norm=binder.vector(f"{at}ffn_norm.weight", channels),
        gate=binder.matrix(f"{at}ffn_gate.weight", channels, width),
        up=binder.matrix(f"{at}ffn_up.weight", channels, width),
        down=binder.matrix(f"{at}ffn_down.weight", width, channels),
        q_bias=biases[0],
        k_bias=biases[1],
        v_bias=biases[2],
        o_bias=binder.optional(f"{at}attn_output.bias", channels),
        q_norm=binder.vector(f"{at}attn_q_norm.weight", attention.head_dim_k) if norms else None,
        k_norm=binder.vector(f"{at}attn_k_norm.weight", attention.head_dim_k) if norms else None,
        gate_bias=binder.optional(f"{at}ffn_gate.bias", width),
        up_bias=binder.optional(f"{at}ffn_up.bias", width),
        down_bias=binder.optional(f"{at}ffn_down.bias", channels),
    )


_Biases = tuple[TensorInfo | None, TensorInfo | None, TensorInfo | None]


def _qkv(
    binder: _Binder, at: str, channels: int, attention: AttentionSpec
) -> tuple[TensorInfo, TensorInfo, TensorInfo, _Biases]:
    sizes = (
        attention.heads * attention.head_dim_k,
        attention.kv_heads * attention.head_dim_k,
        attention.kv_heads * attention.head_dim_v,
    )
    if f"{at}attn_qkv.weight" in binder.gguf.tensors:
        return _fused_qkv(binder, at, channels, sizes)
    q, k, v = (
        binder.matrix(f"{at}attn_{part}.weight", channels, rows) for part, rows in zip("qkv", sizes, strict=True)
    )
    b_q, b_k, b_v = (binder.optional(f"{at}attn_{part}.bias", rows) for part, rows in zip("qkv", sizes, strict=True))
    return q, k, v, (b_q, b_k, b_v)


def _fused_qkv(
    binder: _Binder, at: str, channels: int, sizes: tuple[int, int, int]
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
