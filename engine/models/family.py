"""What a model family's files do not say by themselves: one table entry per architecture name."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from engine.models.spec import Activation, Gating, RopeKind

SharedWidth = Literal["none", "count", "key"]


@dataclass(frozen=True)
class ExpertRules:
    """Routing of a family. `keyed`: gating, normalisation and scale are keys of the file (these are the defaults).

    `width`: the key of an expert's inner channels. `shared`: the always-used part has `expert_shared_count` times
    the width of an expert, or a width key of its own.
    """

    gating: Gating = "softmax"
    normalise: bool = False
    keyed: bool = False
    width: str = "expert_feed_forward_length"
    shared: SharedWidth = "none"
    shared_gate: bool = False
    biases: bool = False


@dataclass(frozen=True)
class Family:
    """`whole_rope`: all channels of a head must be rotated. `qk_norm`: norms of q and k are required per head or
    over all heads, or used per head where the file has them. `window_pattern`: one layer of so many has full
    attention, the others a sliding window. `scales`: the file may scale embeddings, residuals, scores and logits.
    """

    architecture: str
    title: str
    rope: RopeKind
    whole_rope: bool = False
    qk_norm: Literal["none", "head", "whole", "optional"] = "none"
    mla: bool = False
    window_pattern: int = 0
    local_rope: bool = False
    sinks: bool = False
    post_norms: bool = False
    embedding_sqrt: bool = False
    scales: bool = False
    activation: Activation = "silu"
    experts: ExpertRules | None = None


_FFN_WIDTH = "feed_forward_length"

FAMILIES = MappingProxyType(
    {
        family.architecture: family
        for family in (
            Family(
                "llama",
                "Llama, Mistral, Mixtral, SmolLM",
                RopeKind.NORM,
                whole_rope=True,
                experts=ExpertRules(normalise=True, width=_FFN_WIDTH),
            ),
            Family("qwen2", "Qwen 2 and 2.5", RopeKind.NEOX),
            Family("qwen3", "Qwen 3", RopeKind.NEOX, qk_norm="head"),
            Family("qwen2moe", "Qwen 2 MoE", RopeKind.NEOX, experts=ExpertRules(shared="key", shared_gate=True)),
            Family("qwen3moe", "Qwen 3 MoE", RopeKind.NEOX, qk_norm="head", experts=ExpertRules(normalise=True)),
            Family("olmoe", "OLMoE", RopeKind.NEOX, qk_norm="whole", experts=ExpertRules(width=_FFN_WIDTH)),
            Family("granite", "Granite 3 and 4", RopeKind.NORM, scales=True),
            Family(
                "granitemoe",
                "Granite MoE",
                RopeKind.NORM,
                scales=True,
                experts=ExpertRules(normalise=True, width=_FFN_WIDTH, shared="key"),
            ),
            Family(
                "glm4moe",
                "GLM 4.5 and 4.6",
                RopeKind.NEOX,
                qk_norm="optional",
                experts=ExpertRules("sigmoid", keyed=True, shared="count"),
            ),
            Family(
                "deepseek2",
                "DeepSeek V2, V3, R1, Kimi K2, GLM 4.7 Flash",
                RopeKind.NORM,
                mla=True,
                experts=ExpertRules(keyed=True, shared="count"),
            ),
            Family(
                "gpt-oss",
                "gpt-oss",
                RopeKind.NEOX,
                window_pattern=2,
                sinks=True,
                activation="swiglu_clamped",
                experts=ExpertRules("softmax_chosen", biases=True),
            ),
            Family(
                "gemma3",
                "Gemma 3",
                RopeKind.NEOX,
                qk_norm="head",
                window_pattern=6,
                local_rope=True,
                post_norms=True,
                embedding_sqrt=True,
                activation="gelu_tanh",
            ),
        )
    }
)
