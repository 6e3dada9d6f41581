"""The reference backend: torch float32 over dequantised weights, the truth that fast kernels are judged by.

It reads and writes the same pages as the native backend. Each tensor is dequantised at its first use and kept.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from engine.backends.paged_kv import KvHalf, halves
from engine.gguf import GgufFile, TensorInfo
from engine.gguf.dequantise import DEQUANTISED_TYPES, dequantise
from engine.models.spec import AttentionSpec, LayerSpec, ModelSpec, RopeKind, RopeSpec
from engine.models.tensors import LayerTensors, bind
from kernels.program import KvLayerLayout, StepBatch, StepResult

_QUERY_STRIP = 256  # rows of queries whose scores are held at once


class Layout(Protocol):
    """What the backend needs of a page layout."""

    @property
    def page_tokens(self) -> int: ...
    @property
    def layers(self) -> tuple[KvLayerLayout, ...]: ...


class ReferenceBackend:
    """Runs whole steps. `gguf` stays open as long as the backend is used; one thread at a time.

    UnsupportedModel: a tensor type that has no dequantisation here.
    """

    def __init__(self, gguf: GgufFile, spec: ModelSpec, layout: Layout) -> None:
        self._gguf = gguf
        self._spec = spec
        self._tensors = bind(gguf, spec, DEQUANTISED_TYPES)
        self._kv = tuple(halves(layer, layout.page_tokens) for layer in layout.layers)
        self._kept: dict[TensorInfo, Tensor] = {}

    def step(self, batch: StepBatch) -> StepResult:
        """As kernels.native_program.NativeProgram.step; the cancel flag is polled at layer borders."""
        with torch.inference_mode():
            stream = self._embed(batch.tokens)
            positions = _positions(batch)
            for layer, weights in zip(self._spec.layers, self._tensors.layers, strict=True):
                if batch.cancel[0]:
                    return self._result(False, stream[:0])
                stream = stream + self._attention(layer, weights, stream, positions, batch)
                stream = stream + self._ffn(layer, weights, stream)
            return self._result(True, stream[torch.from_numpy(batch.out_rows.astype(np.int64))])

    def head(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits [R, vocabulary] of hidden vectors [R, channels] behind the output norm."""
        with torch.inference_mode():
            return self._logits(torch.from_numpy(hidden.copy())).numpy()

    def _result(self, completed: bool, stream: Tensor) -> StepResult:
        hidden = self._norm(stream, self._tensors.output_norm)
        return StepResult(completed, self._logits(hidden).numpy(), hidden.numpy())

    def _logits(self, hidden: Tensor) -> Tensor:
        return self._linear(hidden, self._tensors.output, None) * self._spec.logit_scale

    def _embed(self, tokens: npt.NDArray[np.int32]) -> Tensor:
        """Only the rows of these tokens are dequantised."""
        info = self._tensors.token_embd
        rows = self._gguf.raw(info).reshape(info.rows, -1)[tokens]
        values = dequantise(rows, info.ggml_type, info.cols)
        return torch.from_numpy(values) * self._spec.embedding_scale

    def _attention(
        self, layer: LayerSpec, weights: LayerTensors, stream: Tensor, positions: Tensor, batch: StepBatch
    ) -> Tensor:
        a, x = layer.attention, self._norm(stream, weights.attn_norm)
        q = self._linear(x, weights.q, weights.q_bias).view(-1, a.heads, a.head_dim_k)
        k = self._linear(x, weights.k, weights.k_bias).view(-1, a.kv_heads, a.head_dim_k)
        v = self._linear(x, weights.v, weights.v_bias).view(-1, a.kv_heads, a.head_dim_v)
        if weights.q_norm is not None and weights.k_norm is not None:
            q, k = self._norm(q, weights.q_norm), self._norm(k, weights.k_norm)
        q, k = _rotate(q, positions, a.rope), _rotate(k, positions, a.rope)
        mixed = [self._sequence(layer, q, k, v, batch, sequence) for sequence in range(len(batch.seq_start))]
        out = torch.cat(mixed).reshape(len(q), -1) if mixed else q.new_zeros(0, a.heads * a.head_dim_v)
        return self._linear(out, weights.o, weights.o_bias) * self._spec.residual_scale

    def _sequence(self, layer: LayerSpec, q: Tensor, k: Tensor, v: Tensor, batch: StepBatch, sequence: int) -> Tensor:
        """Attention of one sequence's rows over its pages: [rows, heads, head_dim_v]."""
        rows = slice(int(batch.seq_rows[sequence]), int(batch.seq_rows[sequence + 1]))
        start, pages = int(batch.seq_start[sequence]), batch.pages[sequence]
        keys, values = self._kv[layer.index]
        if batch.seq_write[sequence]:
            keys.write(pages, start, k[rows].numpy())
            values.write(pages, start, v[rows].numpy())
        stop = start + rows.stop - rows.start
        return _attend(q[rows], _stored(keys, pages, stop), _stored(values, pages, stop), start, layer.attention)

    def _ffn(self, layer: LayerSpec, weights: LayerTensors, stream: Tensor) -> Tensor:
        x = self._norm(stream, weights.ffn_norm)
        gate = self._linear(x, weights.gate, weights.gate_bias)
        up = self._linear(x, weights.up, weights.up_bias)
        opened = functional.silu(gate) if layer.ffn.activation == "silu" else functional.gelu(gate, approximate="tanh")
        return self._linear(opened * up, weights.down, weights.down_bias) * self._spec.residual_scale

    def _norm(self, x: Tensor, weight: TensorInfo) -> Tensor:
        scaled = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self._spec.norm_eps)
        return scaled * self._weight(weight)[0]

    def _linear(self, x: Tensor, weight: TensorInfo, bias: TensorInfo | None) -> Tensor:
        return functional.linear(x, self._weight(weight), None if bias is None else self._weight(bias)[0])

    def _weight(self, info: TensorInfo) -> Tensor:
        """[rows, cols]; a vector is one row."""
        if info not in self._kept:
            values = dequantise(self._gguf.raw(info), info.ggml_type, info.cols)
            self._kept[info] = torch.from_numpy(values)
        return self._kept[info]


def _positions(batch: StepBatch) -> Tensor:
    counts = np.diff(batch.seq_rows)
    first = np.repeat(batch.seq_start - batch.seq_rows[:-1], counts)
    return torch.from_numpy((first + np.arange(len(batch.tokens))).astype(np.float64))


def _stored(half: KvHalf, pages: npt.NDArray[np.uint64], count: int) -> Tensor:
    return torch.from_numpy(half.read(pages, count))


def _rotate(x: Tensor, positions: Tensor, rope: RopeSpec) -> Tensor:
    """Rotates the first `rope.dims` channels of x [rows, heads, channels]; angles in float64."""
    if rope.kind is RopeKind.NONE:
        return x
    angles = positions[:, None] * torch.tensor(rope.inv_freq, dtype=torch.float64)
    cos = (angles.cos() * rope.magnitude).float()[:, None]
    sin = (angles.sin() * rope.magnitude).float()[:, None]
    turned, rest = x[..., : rope.dims], x[..., rope.dims :]
    neox = rope.kind is RopeKind.NEOX
    half = rope.dims // 2
    shape = (*turned.shape[:-1], 2, half) if neox else (*turned.shape[:-1], half, 2)
    pairs = turned.reshape(shape) if neox else turned.reshape(shape).transpose(-1, -2)
    a, b = pairs.unbind(-2)
    rotated = torch.stack([a * cos - b * sin, a * sin + b * cos], -2)
    return torch.cat([(rotated if neox else rotated.transpose(-1, -2)).flatten(-2), rest], -1)


def _attend(q: Tensor, keys: Tensor, values: Tensor, start: int, a: AttentionSpec) -> Tensor:
    """Causal grouped-query attention. q [rows, heads, dk] at positions from `start`; keys [kv_heads, n, dk]."""
    strips = [
        _attend_strip(strip, keys, values, start + i * _QUERY_STRIP, a)
        for i, strip in enumerate(torch.split(q, _QUERY_STRIP))
    ]
    return torch.cat(strips)


def _attend_strip(q: Tensor, keys: Tensor, values: Tensor, start: int, a: AttentionSpec) -> Tensor:
    grouped = q.reshape(len(q), a.kv_heads, -1, a.head_dim_k).permute(1, 2, 0, 3)  # [kv_heads, group, rows, dk]
    scores: Tensor = grouped @ keys[:, None].transpose(-1, -2) * a.scale
    if a.softcap:
        scores = torch.tanh(scores / a.softcap) * a.softcap
    distance = start + torch.arange(len(q))[:, None] - torch.arange(keys.shape[1])
    hidden = (distance < 0) | (distance >= a.window) if a.kind == "window" else distance < 0
    mixed: Tensor = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ values[:, None]
    return mixed.permute(2, 0, 1, 3).flatten(1, 2)
