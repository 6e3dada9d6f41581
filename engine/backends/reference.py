"""The reference backend: torch float32 over dequantised weights, the truth that fast kernels are judged by.

It reads and writes the same pages as the native backend. Each tensor is dequantised at its first use and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from engine.backends.maths.reference import activate, attend, rms_norm, rotate, route
from engine.backends.paged_kv import KvHalf, halves
from engine.gguf import GgufFile, TensorInfo
from engine.gguf.dequantise import DEQUANTISED_TYPES, dequantise
from engine.models.ffn_tensors import DenseTensors, MoeTensors
from engine.models.spec import ExpertSpec, FfnSpec, LayerSpec, MlaSpec, ModelSpec
from engine.models.tensors import AttentionTensors, MlaTensors, bind
from kernels.program import KvLayerLayout, StepBatch, StepResult


class RunExperts(Protocol):
    """Weighted sums [rows, channels] of the chosen experts: x [rows, channels], chosen and weights [rows, used]."""

    def __call__(self, x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor: ...


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

    def __init__(
        self, gguf: GgufFile, spec: ModelSpec, layout: Layout, experts: Mapping[int, RunExperts] | None = None
    ) -> None:
        """`experts`: who computes the routed experts of a layer instead."""
        self._remote = experts or {}
        self._gguf = gguf
        self._spec = spec
        self._tensors = bind(gguf, spec, DEQUANTISED_TYPES)
        self._kv = tuple(halves(layer, layout.page_tokens) for layer in layout.layers)
        self._kept: dict[TensorInfo, Tensor] = {}

    def step(self, batch: StepBatch) -> StepResult:
        """As kernels.native_program.NativeProgram.step; the cancel flag is polled at layer borders."""
        with torch.inference_mode():
            stream = self.embed(batch.tokens)
            positions = positions_of(batch)
            for layer in range(len(self._spec.layers)):
                if batch.cancel[0]:
                    return self._result(False, stream[:0])
                stream = self.ffn(layer, self.attention(layer, stream, positions, batch))
            return self.finish(stream, batch)

    def finish(self, stream: Tensor, batch: StepBatch) -> StepResult:
        """Hidden vectors and logits of the wanted rows of the stream behind the last layer."""
        return self._result(True, stream[torch.from_numpy(batch.out_rows.astype(np.int64))])

    def head(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits [R, vocabulary] of hidden vectors [R, channels] behind the output norm."""
        with torch.inference_mode():
            return self._logits(torch.from_numpy(hidden.copy())).numpy()

    def _result(self, completed: bool, stream: Tensor) -> StepResult:
        hidden = self._norm(stream, self._tensors.output_norm)
        return StepResult(completed, self._logits(hidden).numpy(), hidden.numpy())

    def _logits(self, hidden: Tensor) -> Tensor:
        logits = self._linear(hidden, self._tensors.output) * self._spec.logit_scale
        cap = self._spec.logit_softcap
        return torch.tanh(logits / cap) * cap if cap else logits

    def embed(self, tokens: npt.NDArray[np.int32]) -> Tensor:
        """Only the rows of these tokens are dequantised."""
        info = self._tensors.token_embd
        rows = self._gguf.raw(info).reshape(info.rows, -1)[tokens]
        values = dequantise(rows, info.ggml_type, info.cols)
        return torch.from_numpy(values) * self._spec.embedding_scale

    def attention(self, index: int, stream: Tensor, positions: Tensor, batch: StepBatch) -> Tensor:
        """The stream [rows, channels] behind the attention block of a layer."""
        layer, weights = self._spec.layers[index], self._tensors.layers[index]
        x = self._norm(stream, weights.attn_norm)
        if isinstance(weights.attention, MlaTensors):
            assert layer.attention.mla is not None
            mixed = self._latent_attention(layer, layer.attention.mla, weights.attention, x, positions, batch)
        else:
            mixed = self._grouped_attention(layer, weights.attention, x, positions, batch)
        return self._added(stream, mixed, weights.post_attention_norm)

    def _added(self, stream: Tensor, delta: Tensor, norm: TensorInfo | None) -> Tensor:
        """The residual: behind a post-norm where there is one, scaled where the family does."""
        normed = delta if norm is None else self._norm(delta, norm)
        return stream + normed * self._spec.residual_scale

    def _grouped_attention(
        self, layer: LayerSpec, weights: AttentionTensors, x: Tensor, positions: Tensor, batch: StepBatch
    ) -> Tensor:
        a = layer.attention
        q = self._linear(x, weights.q, weights.q_bias)
        k = self._linear(x, weights.k, weights.k_bias)
        v = self._linear(x, weights.v, weights.v_bias).view(-1, a.kv_heads, a.head_dim_v)
        if a.qk_norm == "whole":
            q, k = self._norm(q, weights.q_norm), self._norm(k, weights.k_norm)
        q, k = q.view(-1, a.heads, a.head_dim_k), k.view(-1, a.kv_heads, a.head_dim_k)
        if a.qk_norm == "head":
            q, k = self._norm(q, weights.q_norm), self._norm(k, weights.k_norm)
        q, k = rotate(q, positions, a.rope), rotate(k, positions, a.rope)
        sinks = None if weights.sinks is None else self._weight(weights.sinks)[0]
        mixed = [q.new_zeros(0, a.heads, a.head_dim_v)]
        for sequence, rows in enumerate(_sequences(batch)):
            keys, values = self._stored(layer.index, batch, sequence, k[rows], v[rows])
            mixed.append(attend(q[rows], keys, values, int(batch.seq_start[sequence]), a, sinks))
        return self._linear(torch.cat(mixed).flatten(1), weights.o, weights.o_bias)

    def _latent_attention(
        self, layer: LayerSpec, mla: MlaSpec, weights: MlaTensors, x: Tensor, positions: Tensor, batch: StepBatch
    ) -> Tensor:
        a = layer.attention
        low = x if weights.q_a is None else self._norm(self._linear(x, weights.q_a), weights.q_a_norm)
        q = self._linear(low, weights.q).view(-1, a.heads, mla.nope + mla.rope)
        q = torch.cat([q[..., : mla.nope], rotate(q[..., mla.nope :], positions, a.rope)], -1)
        latent, k_rope = torch.split(self._linear(x, weights.kv_a)[:, None], [mla.kv_lora, mla.rope], -1)
        rows_k = torch.cat([self._norm(latent, weights.kv_a_norm), rotate(k_rope, positions, a.rope)], -1)
        mixed = [q.new_zeros(0, a.heads, mla.value_dim)]
        for sequence, rows in enumerate(_sequences(batch)):
            stored, _ = self._stored(layer.index, batch, sequence, rows_k[rows], None)
            keys, values = self._expanded(weights, mla, stored[0])
            mixed.append(attend(q[rows], keys, values, int(batch.seq_start[sequence]), a, None))
        return self._linear(torch.cat(mixed).flatten(1), weights.o)

    def _expanded(self, weights: MlaTensors, mla: MlaSpec, stored: Tensor) -> tuple[Tensor, Tensor]:
        """Keys [heads, n, nope + rope] and values [heads, n, value_dim] of stored rows [n, kv_lora + rope]."""
        latent, k_rope = torch.split(stored, [mla.kv_lora, mla.rope], -1)
        k_b = torch.stack([self._weight(head) for head in weights.k_b])
        k_nope = latent @ (k_b if weights.k_transposed else k_b.transpose(-1, -2))
        values = latent @ torch.stack([self._weight(head) for head in weights.v_b]).transpose(-1, -2)
        return torch.cat([k_nope, k_rope.expand(len(k_b), -1, -1)], -1), values

    def _stored(
        self, layer: int, batch: StepBatch, sequence: int, k: Tensor, v: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """K and V [kv_heads, n, channels] of one sequence up to its last row, whose own are written first."""
        start, pages = int(batch.seq_start[sequence]), batch.pages[sequence]
        keys, values = self._kv[layer]
        if batch.seq_write[sequence]:
            keys.write(pages, start, k.numpy())
            if v is not None:
                values.write(pages, start, v.numpy())
        stop, a = start + len(k), self._spec.layers[layer].attention
        oldest = max(0, start + 1 - a.window) if a.kind == "window" else 0
        return _read(keys, pages, stop, oldest), k if v is None else _read(values, pages, stop, oldest)

    def ffn(self, index: int, stream: Tensor) -> Tensor:
        """The stream behind the feed-forward block of a layer."""
        ffn, weights = self._spec.layers[index].ffn, self._tensors.layers[index]
        x = self._norm(stream, weights.ffn_norm)
        if isinstance(weights.ffn, MoeTensors):
            assert ffn.experts is not None
            opened = self._mixture(index, ffn, ffn.experts, weights.ffn, x)
        else:
            opened = self._dense(ffn, weights.ffn, x)
        return self._added(stream, opened, weights.post_ffn_norm)

    def _dense(self, ffn: FfnSpec, weights: DenseTensors, x: Tensor) -> Tensor:
        gate = self._linear(x, weights.gate, weights.gate_bias)
        up = self._linear(x, weights.up, weights.up_bias)
        return self._linear(activate(gate, up, ffn.activation), weights.down, weights.down_bias)

    def _mixture(self, layer: int, ffn: FfnSpec, experts: ExpertSpec, weights: MoeTensors, x: Tensor) -> Tensor:
        logits = self._linear(x, weights.router, weights.router_bias)
        bias = None if weights.choice_bias is None else self._weight(weights.choice_bias)[0]
        chosen, shares = route(logits, bias, experts)
        remote = self._remote.get(layer)
        out = remote(x, chosen, shares) if remote else self._routed(ffn, weights, x, chosen, shares)
        return out if weights.shared is None else out + self._shared(ffn, weights.shared, weights, x)

    def _routed(self, ffn: FfnSpec, weights: MoeTensors, x: Tensor, chosen: Tensor, shares: Tensor) -> Tensor:
        """Experts ascending, each on the rows that chose it."""
        out = torch.zeros_like(x)
        for expert in sorted(set(chosen.flatten().tolist())):
            rows, places = (chosen == expert).nonzero(as_tuple=True)
            out[rows] += self._expert(ffn, weights, expert, x[rows]) * shares[rows, places, None]
        return out

    def _expert(self, ffn: FfnSpec, weights: MoeTensors, expert: int, x: Tensor) -> Tensor:
        gate = functional.linear(x, self._weight(weights.gate[expert]), self._row(weights.gate_bias, expert))
        up = functional.linear(x, self._weight(weights.up[expert]), self._row(weights.up_bias, expert))
        opened = activate(gate, up, ffn.activation)
        return functional.linear(opened, self._weight(weights.down[expert]), self._row(weights.down_bias, expert))

    def _shared(self, ffn: FfnSpec, shared: DenseTensors, weights: MoeTensors, x: Tensor) -> Tensor:
        out = self._dense(ffn, shared, x)
        return out if weights.shared_gate is None else out * torch.sigmoid(self._linear(x, weights.shared_gate))

    def _row(self, info: TensorInfo | None, index: int) -> Tensor | None:
        return None if info is None else self._weight(info)[index]

    def _norm(self, x: Tensor, weight: TensorInfo | None) -> Tensor:
        assert weight is not None
        return rms_norm(x, self._weight(weight)[0], self._spec.norm_eps)

    def _linear(self, x: Tensor, weight: TensorInfo, bias: TensorInfo | None = None) -> Tensor:
        return functional.linear(x, self._weight(weight), None if bias is None else self._weight(bias)[0])

    def _weight(self, info: TensorInfo) -> Tensor:
        """[rows, cols]; a vector is one row."""
        if info not in self._kept:
            values = dequantise(self._gguf.raw(info), info.ggml_type, info.cols)
            weight = torch.from_numpy(values)
            self._kept[info] = weight if info.scale == 1 else weight * info.scale
        return self._kept[info]


def positions_of(batch: StepBatch) -> Tensor:
    """Of every row, float64."""
    counts = np.diff(batch.seq_rows)
    first = np.repeat(batch.seq_start - batch.seq_rows[:-1], counts)
    return torch.from_numpy((first + np.arange(len(batch.tokens))).astype(np.float64))


def _sequences(batch: StepBatch) -> list[slice]:
    """The rows of each sequence."""
    return [slice(int(a), int(b)) for a, b in zip(batch.seq_rows[:-1], batch.seq_rows[1:], strict=True)]


def _read(half: KvHalf, pages: npt.NDArray[np.uint64], count: int, oldest: int) -> Tensor:
    return torch.from_numpy(half.read(pages, count, oldest))
