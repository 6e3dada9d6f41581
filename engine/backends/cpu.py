"""The CPU backend: compiles the blocks of a stretch into one native program, run in one call per step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from kernels.native_program import NativeProgram

from engine.gguf import GgufFile, TensorInfo
from engine.kv.layout import PageLayout
from engine.models.spec import AttentionSpec, LayerSpec, ModelSpec, RopeKind, RopeSpec
from engine.models.tensors import LayerTensors, ModelTensors, bind
from engine.placement import Block, Stretch
from kernels.program import (
    Attention,
    Embed,
    Gated,
    Head,
    HeadNorm,
    Instruction,
    KvWrite,
    Linear,
    Program,
    RmsNorm,
    Rope,
    RopeTable,
    TensorRef,
)

T = TypeVar("T")

# F32, F16, Q4_0, Q4_1, Q8_0, BF16: what the native kernels multiply with.
LINEAR_TYPES = frozenset({0, 1, 2, 3, 8, 30})


@dataclass(frozen=True)
class _Buffers:
    """Row buffers of the program, numbered as in `widths`."""

    stream: int = 0
    normed: int = 1
    q: int = 2
    k: int = 3
    v: int = 4
    mixed: int = 5
    gate: int = 6
    up: int = 7


def native_backend(
    gguf: GgufFile, spec: ModelSpec, layout: PageLayout, stretch: Stretch, threads: int
) -> NativeProgram:
    """Binds the file's tensors to native kernels. UnsupportedModel: a tensor type they do not know."""
    tensors = bind(gguf, spec, LINEAR_TYPES)
    return NativeProgram(compile_program(gguf, spec, tensors, layout, stretch), threads)


def compile_program(
    gguf: GgufFile, spec: ModelSpec, tensors: ModelTensors, layout: PageLayout, stretch: Stretch
) -> Program:
    """The native program of a stretch that holds the whole model. `gguf` must stay open while it is used."""
    emitter = _Emitter(gguf, spec, tensors, layout)
    for block in stretch.blocks:
        emitter.emit(block)
    return emitter.program()


@dataclass
class _Emitter:
    gguf: GgufFile
    spec: ModelSpec
    tensors: ModelTensors
    layout: PageLayout
    refs: list[TensorRef] = field(default_factory=list)
    ropes: list[RopeTable] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    at: _Buffers = field(default_factory=_Buffers)

    def program(self) -> Program:
        return Program(
            widths=self._widths(),
            tensors=tuple(self.refs),
            kv_layers=self.layout.layers,
            page_tokens=self.layout.page_tokens,
            ropes=tuple(self.ropes),
            instructions=tuple(self.code),
            vocabulary=self.spec.vocabulary,
            channels=self.spec.channels,
        )

    def emit(self, block: Block) -> None:
        if block.kind == "embedding":
            embd = self._ref(self.tensors.token_embd)
            self.code.append(Embed(self.at.stream, embd, self.spec.embedding_scale))
        elif block.kind == "head":
            self._head()
        elif block.kind == "attention":
            self._attention(self.spec.layers[block.layer], self.tensors.layers[block.layer])
        elif block.kind == "dense_ffn":
            self._ffn(self.spec.layers[block.layer], self.tensors.layers[block.layer])
        else:
            raise NotImplementedError(f"block kind {block.kind}")

    def _widths(self) -> tuple[int, ...]:
        attention = [layer.attention for layer in self.spec.layers]
        ffn = max(layer.ffn.width for layer in self.spec.layers)
        return (
            self.spec.channels,
            self.spec.channels,
            max(a.heads * a.head_dim_k for a in attention),
            max(a.kv_heads * a.head_dim_k for a in attention),
            max(a.kv_heads * a.head_dim_v for a in attention),
            max(a.heads * a.head_dim_v for a in attention),
            ffn,
            ffn,
        )

    def _attention(self, layer: LayerSpec, weights: LayerTensors) -> None:
        at, a = self.at, layer.attention
        self._norm(weights.attn_norm)
        self._linear(at.q, at.normed, weights.q, weights.q_bias)
        self._linear(at.k, at.normed, weights.k, weights.k_bias)
        self._linear(at.v, at.normed, weights.v, weights.v_bias)
        self._head_norms(a, weights)
        self._rotate(a)
        self.code.append(KvWrite(at.k, at.v, layer.index))
        window = a.window if a.kind == "window" else 0
        self.code.append(Attention(at.mixed, at.q, layer.index, a.heads, a.scale, window, a.softcap))
        self._residual(at.mixed, weights.o, weights.o_bias)

    def _ffn(self, layer: LayerSpec, weights: LayerTensors) -> None:
        at = self.at
        self._norm(weights.ffn_norm)
        self._linear(at.gate, at.normed, weights.gate, weights.gate_bias)
        self._linear(at.up, at.normed, weights.up, weights.up_bias)
        self.code.append(Gated(at.gate, at.gate, at.up, layer.ffn.activation))
        self._residual(at.gate, weights.down, weights.down_bias)

    def _head(self) -> None:
        norm, output = self._ref(self.tensors.output_norm), self._ref(self.tensors.output)
        scale = self.spec.logit_scale
        self.code.append(Head(self.at.stream, norm, self.spec.norm_eps, output, scale))

    def _norm(self, weight: TensorInfo) -> None:
        self.code.append(RmsNorm(self.at.normed, self.at.stream, self._ref(weight), self.spec.norm_eps))

    def _linear(self, out: int, src: int, weight: TensorInfo, bias: TensorInfo | None) -> None:
        self.code.append(Linear(out, src, self._ref(weight), self._optional(bias)))

    def _residual(self, src: int, weight: TensorInfo, bias: TensorInfo | None) -> None:
        scale = self.spec.residual_scale
        weights = self._ref(weight), self._optional(bias)
        self.code.append(Linear(self.at.stream, src, *weights, accumulate=True, scale=scale))

    def _head_norms(self, a: AttentionSpec, weights: LayerTensors) -> None:
        eps = self.spec.norm_eps
        if weights.q_norm is not None:
            self.code.append(HeadNorm(self.at.q, self._ref(weights.q_norm), a.heads, a.head_dim_k, eps))
        if weights.k_norm is not None:
            self.code.append(HeadNorm(self.at.k, self._ref(weights.k_norm), a.kv_heads, a.head_dim_k, eps))

    def _rotate(self, a: AttentionSpec) -> None:
        if a.rope.kind is not RopeKind.NONE:
            rope = self._rope(a.rope)
            self.code.append(Rope(self.at.q, a.heads, a.head_dim_k, rope))
            self.code.append(Rope(self.at.k, a.kv_heads, a.head_dim_k, rope))

    def _rope(self, rope: RopeSpec) -> int:
        return _index(self.ropes, RopeTable(rope.dims, rope.inv_freq, rope.magnitude, int(rope.kind)))

    def _ref(self, info: TensorInfo) -> int:
        return _index(self.refs, TensorRef(self.gguf.address(info), info.ggml_type, info.rows, info.cols))

    def _optional(self, info: TensorInfo | None) -> int | None:
        return None if info is None else self._ref(info)


def _index(entries: list[T], entry: T) -> int:
    """Place of an equal entry, added if there is none: tied weights and rope tables are listed once."""
    if entry not in entries:
        entries.append(entry)
    return entries.index(entry)
