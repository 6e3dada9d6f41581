"""A model step as data: tensors, KV layout and a list of instructions over float32 row buffers.

Buffers are numbered; buffer `b` is [rows of the batch, Program.widths[b]] float32. Instructions name tensors,
rope tables and KV layers by their index in the `Program`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

KvType = Literal["f32", "f16", "bf16", "q8"]
Activation = Literal["silu", "gelu_tanh"]

ROPE_NORM = 1
ROPE_NEOX = 2


@dataclass(frozen=True)
class TensorRef:
    """A weight where it lies: row-major [rows, cols]; a row is `cols` elements of a GGML type (0 F32, 3 Q4_1, ...).

    The memory at `address` must outlive every program that refers to it.
    """

    address: int
    ggml_type: int
    rows: int
    cols: int


@dataclass(frozen=True)
class KvLayerLayout:
    """Byte offsets of one layer inside a page's payload.

    At `k_offset` lies [kv_heads, page_tokens, head_dim_k], at `v_offset` [kv_heads, page_tokens, head_dim_v].
    "q8" is int8 data followed, 64-byte aligned, by float16 scales [kv_heads, page_tokens, head_dim / 32].
    """

    k_offset: int
    v_offset: int
    kv_heads: int
    head_dim_k: int
    head_dim_v: int
    type_k: str
    type_v: str


@dataclass(frozen=True)
class RopeTable:
    """Rotation of the first `dims` channels of a head; kind 1 pairs (2i, 2i+1), kind 2 pairs (i, i + dims/2).

    `inv_freq`: radians per position of the `dims / 2` pairs. `magnitude` scales cosine and sine.
    """

    dims: int
    inv_freq: tuple[float, ...]
    magnitude: float
    kind: int


@dataclass(frozen=True)
class Embed:
    """out[t] = scale * weight[token t]."""

    out: int
    weight: int
    scale: float = 1.0


@dataclass(frozen=True)
class RmsNorm:
    """out = src / sqrt(mean(src^2) + eps) * weight."""

    out: int
    src: int
    weight: int
    eps: float


@dataclass(frozen=True)
class HeadNorm:
    """RmsNorm of each head of `buf` in place; `weight` has head_dim values."""

    buf: int
    weight: int
    heads: int
    head_dim: int
    eps: float


@dataclass(frozen=True)
class Linear:
    """out = scale * (src @ weight.T + bias), added to `out` when `accumulate`."""

    out: int
    src: int
    weight: int
    bias: int | None = None
    accumulate: bool = False
    scale: float = 1.0


@dataclass(frozen=True)
class Rope:
    """Rotate the first `dims` channels of each head of `buf` in place by the row's position."""

    buf: int
    heads: int
    head_dim: int
    rope: int


@dataclass(frozen=True)
class KvWrite:
    """Store rows of buffers `k` and `v` in the pages of their sequence, at their position."""

    k: int
    v: int
    layer: int


@dataclass(frozen=True)
class Attention:
    """Causal attention of `heads` query heads over the stored K and V of `layer`.

    `window` > 0 keeps keys with position > query - window; `softcap` > 0 bounds scores by c * tanh(s / c);
    `sinks` is a float32 tensor [heads] that joins the softmax denominator.
    """

    out: int
    q: int
    layer: int
    heads: int
    scale: float
    window: int = 0
    softcap: float = 0.0
    sinks: int | None = None


@dataclass(frozen=True)
class Gated:
    """out = activation(gate) * up. `out` may be `gate` or `up`."""

    out: int
    gate: int
    up: int
    activation: Activation = "silu"


@dataclass(frozen=True)
class Head:
    """For the batch's out_rows only: hidden = norm(src), logits = scale * (hidden @ weight.T), soft-capped."""

    src: int
    norm_weight: int
    eps: float
    weight: int
    scale: float = 1.0
    softcap: float = 0.0


Instruction: TypeAlias = Embed | RmsNorm | HeadNorm | Linear | Rope | KvWrite | Attention | Gated | Head


@dataclass(frozen=True)
class Program:
    """Everything a step needs besides the batch. `channels` is the width of the residual stream."""

    widths: tuple[int, ...]
    tensors: tuple[TensorRef, ...]
    kv_layers: tuple[KvLayerLayout, ...]
    page_tokens: int
    ropes: tuple[RopeTable, ...]
    instructions: tuple[Instruction, ...]
    vocabulary: int
    channels: int


@dataclass(frozen=True)
class StepBatch:
    """Rows of one step, sequence after sequence, each in ascending position.

    tokens int32 [T]; roles uint8 [T]; seq_rows int32 [S+1], rows of sequence s are seq_rows[s]:seq_rows[s+1];
    seq_start int32 [S], position of its first row; pages uint64 [S, max_pages], addresses of page payloads (page p
    holds positions p * page_tokens and on); seq_write uint8 [S], 0 leaves K and V as stored; out_rows int32 [R],
    rows that want logits; cancel uint8 [1], a nonzero value set by any thread stops the step.
    """

    tokens: NDArray[np.int32]
    roles: NDArray[np.uint8]
    seq_rows: NDArray[np.int32]
    seq_start: NDArray[np.int32]
    pages: NDArray[np.uint64]
    seq_write: NDArray[np.uint8]
    out_rows: NDArray[np.int32]
    cancel: NDArray[np.uint8]


@dataclass(frozen=True)
class StepResult:
    """logits float32 [R, vocabulary]; hidden float32 [R, channels] after the output norm.

    Neither is valid unless `completed`.
    """

    completed: bool
    logits: NDArray[np.float32]
    hidden: NDArray[np.float32]
