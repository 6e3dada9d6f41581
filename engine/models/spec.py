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
Activation = Literal["silu", "gelu_tanh"]


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
class AttentionSpec:
    """Grouped-query attention of one layer; sizes in heads and channels per head."""

    kind: AttentionKind
    heads: int
    kv_heads: int
    head_dim_k: int
    head_dim_v: int
    scale: float
    rope: RopeSpec
    window: int = 0
    softcap: float = 0.0
    qk_norm: bool = False
    bias: bool = False
    sinks: bool = False


@dataclass(frozen=True)
class FfnSpec:
    kind: FfnKind
    width: int
    activation: Activation = "silu"


@dataclass(frozen=True)
class LayerSpec:
    index: int
    attention: AttentionSpec
    ffn: FfnSpec


@dataclass(frozen=True)
class ModelSpec:
    """`channels` is the width of the residual stream; `context` the file's own context length in tokens.

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
    warnings: tuple[str, ...] = ()
