"""ModelSpec: a transformer described in tables. One decoder builds every family from it.

A family is an entry that fills this table from GGUF keys (see `families.py`); nothing here knows a family.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal


class RopeKind(IntEnum):
    """Which channels rotate together: NORM pairs (2i, 2i+1), NEOX pairs (i, i + n/2)."""

    NONE = 0
    NORM = 1
    NEOX = 2


AttentionKind = Literal["full", "window", "recurrent"]
FfnKind = Literal["dense", "moe"]
Activation = Literal["silu", "gelu_tanh", "swiglu_clamped"]
Gating = Literal["softmax", "sigmoid", "softmax_chosen", "sqrt_softplus"]
QkNorm = Literal["none", "head", "whole"]


@dataclass(frozen=True)
class RopeSpec:
    """`inv_freq`: radians per position of each of the `dims / 2` pairs, factors applied.

    `magnitude` scales cos and sin.
    """

    kind: RopeKind
    dims: int
    inv_freq: tuple[float, ...]
    magnitude: float = 1.0


@dataclass(frozen=True)
class MlaSpec:
    """Latent attention: K and V of all heads are products of one vector of `kv_lora` channels per token.

    A head's q and k have `nope` channels without and then `rope` channels with a position, its value `value_dim`.
    `q_lora` is the width of q's own low-rank form, 0 where q is one product.
    """

    kv_lora: int
    nope: int
    rope: int
    value_dim: int
    q_lora: int = 0


@dataclass(frozen=True)
class RecurrentSpec:
    """A layer whose state does not grow with the tokens: float32, `heads` matrices [key_dim, value_dim], and the last
    `convolved` - 1 inputs of a convolution over `channels` channels (0: without one).
    """

    heads: int
    key_dim: int
    value_dim: int
    channels: int = 0
    convolved: int = 1

    @property
    def state_bytes(self) -> int:
        return 4 * (self.heads * self.key_dim * self.value_dim + self.channels * (self.convolved - 1))


@dataclass(frozen=True)
class AttentionSpec:
    """Attention of one layer; sizes in heads and channels per head, as stored in the pages.

    Latent attention (`mla`) stores one K head of kv_lora + rope channels and no V (head_dim_v 0). `qk_norm`: norms of
    q and k per head, or over all heads together. `recurrent`: of a layer of that kind, which has no K and V.
    """

    kind: AttentionKind
    heads: int
    kv_heads: int
    head_dim_k: int
    head_dim_v: int
    scale: float
    rope: RopeSpec
    window: int = 0
    softcap: float = 0.0
    qk_norm: QkNorm = "none"
    bias: bool = False
    sinks: bool = False
    mla: MlaSpec | None = None
    recurrent: RecurrentSpec | None = None

    @property
    def mixed_dim(self) -> int:
        """Channels per head of what attention gives."""
        return self.head_dim_v if self.mla is None else self.mla.value_dim


@dataclass(frozen=True)
class ExpertSpec:
    """A router and its experts. `groups` > 1: only experts of the `groups_used` best groups are chosen.

    `normalise`: the chosen weights are divided by their sum; all are multiplied by `scale`. `shared_width`: of the
    feed-forward part that every token passes, 0 without one; `shared_gate`: it has a gate of its own.
    """

    count: int
    used: int
    gating: Gating
    normalise: bool = False
    scale: float = 1.0
    groups: int = 1
    groups_used: int = 1
    shared_width: int = 0
    shared_gate: bool = False
    biases: bool = False


@dataclass(frozen=True)
class FfnSpec:
    """`width`: inner channels, of one expert where there are `experts`."""

    kind: FfnKind
    width: int
    activation: Activation = "silu"
    experts: ExpertSpec | None = None


@dataclass(frozen=True)
class LayerSpec:
    """`post_norms`: what attention and feed-forward give is normed before it is added to the stream."""

    index: int
    attention: AttentionSpec
    ffn: FfnSpec
    post_norms: bool = False


@dataclass(frozen=True)
class ModelSpec:
    """`channels` is the width of the residual stream; `context` the file's own context length in tokens.

    `skipped_layers`: behind the last one, for predicting further tokens; not used.

    `warnings`: sentences for the reader about values that were derived because the file's own are unusable.
    """

    architecture: str
    name: str
    vocabulary: int
    channels: int
    context: int
    norm_eps: float
    layers: tuple[LayerSpec, ...]
    tied_output: bool
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    logit_softcap: float = 0.0
    skipped_layers: int = 0
    warnings: tuple[str, ...] = ()

    def within(self, context: int) -> tuple[int, tuple[str, ...]]:
        """A wanted context (0: the model's own), at most the model's own, with a warning where that is less."""
        if context <= self.context:
            return context or self.context, ()
        return self.context, (f"The model was made for {self.context:,} tokens; the context is set to that.",)
