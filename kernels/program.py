"""A model step as data: tensors, KV layout and a list of instructions over float32 row buffers.

Buffers are numbered; buffer `b` is [rows of the batch, Program.widths[b]] float32. Instructions name tensors,
rope tables and KV layers by their index in the `Program`.

Over 300 lines: the whole instruction set in one place, nearly all of it fields and their contracts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

KvType = Literal["f32", "f16", "bf16", "q8", "q4"]
Activation = Literal["silu", "gelu_tanh", "swiglu_clamped"]
Gating = Literal["softmax", "sigmoid", "softmax_chosen", "sqrt_softplus"]

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
    "q8" is int8 data followed, 64-byte aligned, by float16 scales [kv_heads, page_tokens, head_dim / 32]. "q4" has the
    same scales behind nibbles [.., head_dim / 2]: byte i of a block of 32 channels holds channels i (low) and i + 16,
    (nibble - 8) * scale each, of the head rotated by a Walsh-Hadamard transform (kernels/native/hadamard.h).
    `head_dim_v` 0: latent attention (MLA); K is the latent vector followed by the rotated key, there is no V.
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
    """RmsNorm of each head of `buf` in place; `weight` has head_dim values.

    `dims` > 0: only the first `dims` channels of a head are normed (`weight` has as many), the rest stays.
    """

    buf: int
    weight: int
    heads: int
    head_dim: int
    eps: float
    dims: int = 0


@dataclass(frozen=True)
class Add:
    """out = out + scale * src, buffers of one width (residual behind a post-norm)."""

    out: int
    src: int
    scale: float = 1.0


@dataclass(frozen=True)
class SigmoidGate:
    """buf[t] = buf[t] * sigmoid(src[t] . weight), `weight` F32 with the width of `src` (gated shared expert)."""

    buf: int
    src: int
    weight: int


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
    """Rotate the `dims` channels from `first` on of each head of `buf` in place by the row's position."""

    buf: int
    heads: int
    head_dim: int
    rope: int
    first: int = 0


@dataclass(frozen=True)
class KvWrite:
    """Store rows of buffers `k` and `v` in the pages of their sequence, at their position.

    `v` is -1 for latent attention.
    """

    k: int
    v: int
    layer: int


@dataclass(frozen=True)
class Attention:
    """Causal attention of `heads` query heads over the stored K and V of `layer`.

    `window` > 0 keeps keys with position > query - window; `softcap` > 0 bounds scores by c * tanh(s / c);
    `sinks` is a float32 tensor [heads] that joins the softmax denominator. `out` may be `q`.
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
class MlaAttention:
    """Causal latent attention (MLA) over the stored rows [c, k_pe] of `layer`, c the first `kv_lora` channels.

    `q` [T, heads, nope + rope], its last channels rotated; `out` [T, heads, value_dim].
    Head h uses tensors k_b + h and v_b + h: k_nope = K_h c, value = V_h c, score = scale * (q_nope . k_nope +
    q_pe . k_pe). V_h is [value_dim rows, kv_lora cols]; K_h is [nope rows, kv_lora cols], and with `k_transposed`
    [kv_lora rows, nope cols]. Rows with role 1 (generated) use the absorbed form (q through K_h, sums of c through
    V_h), rows with role 0 the decompressed one.
    """

    out: int
    q: int
    layer: int
    heads: int
    scale: float
    kv_lora: int
    nope: int
    value_dim: int
    k_b: int
    v_b: int
    k_transposed: bool = False


@dataclass(frozen=True)
class Route:
    """Chooses `used` of `experts` for each row from the router's logits in `src` [T, experts].

    `out` [T, 2 * used]: the chosen expert ids, ascending, as floats, then their weights.
    probabilities = gating(logits) ("softmax_chosen": the logits themselves); choice by probability + bias[expert]
    (`bias`: F32 tensor, selects only). With groups > 1, experts are equal consecutive groups, a group scores the sum
    of its two best, and only the `groups_used` best groups take part. Ties: the lower id. weight = probability
    ("softmax_chosen": softmax over the chosen logits; "sqrt_softplus": sqrt(softplus(logit))), divided by
    max(sum of the chosen, 6.103515625e-5) if `normalise`, times `scale`.
    """

    out: int
    src: int
    experts: int
    used: int
    gating: Gating = "softmax"
    bias: int | None = None
    groups: int = 1
    groups_used: int = 1
    normalise: bool = False
    scale: float = 1.0


@dataclass(frozen=True)
class Experts:
    """out = scale * sum over the row's experts e, ascending, of weight_e * (down_e @ h_e + down_bias_e), added to
    `out` when `accumulate`; h_e = activation(gate_e @ x + gate_bias_e, up_e @ x + up_bias_e), x the row of `src`.

    Expert e uses tensors gate + e and up + e [width, cols of src], down + e [cols of out, width]; they are
    consecutive in Program.tensors and may lie anywhere (fused gate_up: two row ranges of one stored tensor). Biases:
    F32 tensors [experts, width] and [experts, cols of out]. `route` as written by Route.
    `factors`: F32 tensor [3, experts], by which gate_e @ x + gate_bias_e, the same of up, and of down are multiplied.
    """

    out: int
    src: int
    route: int
    experts: int
    used: int
    gate: int
    up: int
    down: int
    gate_bias: int | None = None
    up_bias: int | None = None
    down_bias: int | None = None
    factors: int | None = None
    activation: Activation = "silu"
    accumulate: bool = True
    scale: float = 1.0


@dataclass(frozen=True)
class Gated:
    """out = activation(gate) * up. `out` may be `gate` or `up`.

    "swiglu_clamped" (gpt-oss): g = min(gate, 7), u = clamp(up, -7, 7), out = g * sigmoid(1.702 g) * (u + 1).
    """

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


Instruction: TypeAlias = (
    Embed
    | RmsNorm
    | HeadNorm
    | Add
    | SigmoidGate
    | Linear
    | Rope
    | KvWrite
    | Attention
    | MlaAttention
    | Gated
    | Route
    | Experts
    | Head
)


@dataclass(frozen=True)
class Program:
    """Everything a step needs besides the batch. `channels` is the width of the residual stream.

    `owned`: memory behind addresses in `tensors` that nobody else keeps.
    """

    widths: tuple[int, ...]
    tensors: tuple[TensorRef, ...]
    kv_layers: tuple[KvLayerLayout, ...]
    page_tokens: int
    ropes: tuple[RopeTable, ...]
    instructions: tuple[Instruction, ...]
    vocabulary: int
    channels: int
    owned: tuple[NDArray[np.float32], ...] = field(default=(), repr=False, compare=False)


STOP, PARK = 1, 2  # values of StepBatch.cancel


@dataclass(frozen=True)
class StepBatch:
    """Rows of one step, sequence after sequence, each in ascending position.

    tokens int32 [T]; roles uint8 [T]; seq_rows int32 [S+1], rows of sequence s are seq_rows[s]:seq_rows[s+1];
    seq_start int32 [S], position of its first row; pages uint64 [S, max_pages], addresses of page payloads (page p
    holds positions p * page_tokens and on); seq_write uint8 [S], 0 leaves K and V as stored; out_rows int32 [R],
    rows that want logits; cancel uint8 [1], which any thread may set: STOP ends the step, PARK lets it wait between two
    units of work if it is parkable and ends it otherwise.
    """

    tokens: NDArray[np.int32]
    roles: NDArray[np.uint8]
    seq_rows: NDArray[np.int32]
    seq_start: NDArray[np.int32]
    pages: NDArray[np.uint64]
    seq_write: NDArray[np.uint8]
    out_rows: NDArray[np.int32]
    cancel: NDArray[np.uint8]


class StepResult(NamedTuple):
    """logits float32 [R, vocabulary]; hidden float32 [R, channels] after the output norm.

    Neither is valid unless `completed`. `parked`: the step waits within a layer or behind it and can be resumed.
    """

    completed: bool
    logits: NDArray[np.float32]
    hidden: NDArray[np.float32]
    parked: bool = False
