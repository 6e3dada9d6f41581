"""Small random models of `transformers`, exported to GGUF: both backends against its logits, float32 against float32.

An oracle that shares no code with llama.cpp. Each family once, with what its configuration can vary: odd head sizes,
grouped heads, windows shorter than the text, routing, shared parts, rope scalings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.messages import EngineSettings
from engine.offline import run_logits
from tests.engine.gguf_bytes import BOOL, F32, STRING, U32
from tests.engine.parity import TWIN_LIMIT, relative_errors
from tests.engine.tiny_model import WORDS, Changes
from tests.engine.transformers_export import Array, export

pytestmark = pytest.mark.slow  # importing transformers takes ten seconds, the models a moment
GELU_STEPS = 1e-3  # GELU goes in 16-bit steps, as in llama.cpp

BASE = {
    "vocab_size": len(WORDS),
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS: Changes = {"expert_count": (U32, 8), "expert_used_count": (U32, 3)}
HF_EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3}
LOCAL = {"num_local_experts": 8, "num_experts_per_tok": 3}
ROUTED = {"n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 1, "first_k_dense_replace": 1}
SIGMOID: Changes = {
    "expert_shared_count": (U32, 1),
    "leading_dense_block_count": (U32, 1),
    "expert_gating_func": (U32, 2),
    "expert_weights_norm": (BOOL, True),
}


def heads(key: int, value: int | None = None, rope: int | None = None) -> Changes:
    return {
        "attention.key_length": (U32, key),
        "attention.value_length": (U32, value or key),
        "rope.dimension_count": (U32, rope or key),
    }


def width(channels: int) -> Changes:
    return {"expert_feed_forward_length": (U32, channels)}


SCALES: Changes = {
    "attention.scale": (F32, 0.2),
    "embedding_scale": (F32, 3.0),
    "residual_scale": (F32, 0.3),
    "logit_scale": (F32, 2.0),
}
HF_SCALES = {
    "attention_multiplier": 0.2,
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.3,
    "logits_scaling": 2.0,
}
LATENT = {"kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 20, "num_key_value_heads": 4}
LATENT_KEYS: Changes = {**heads(24, 20, 8), "attention.kv_lora_rank": (U32, 32), "attention.head_count_kv": (U32, 4)}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}
YARN_KEYS: Changes = {
    "rope.scaling.type": (STRING, "yarn"),
    "rope.scaling.factor": (F32, 4.0),
    "rope.scaling.original_context_length": (U32, 64),
}


@dataclass(frozen=True)
class Case:
    """`config`: the class's name in transformers. `factors`: rope factors are taken from the model. `tensors`: such as
    the model has as settings. `context`: to run with, 0 for the model's own."""

    config: str
    architecture: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    keys: Changes = field(default_factory=dict)
    factors: bool = False
    limit: float = TWIN_LIMIT
    tensors: Mapping[str, Array] = field(default_factory=dict)
    context: int = 0


def longrope(original: int, context: int) -> Case:
    """41 tokens are a long text for an original context of 32."""
    short, long = np.linspace(1, 2, 8, dtype=np.float32), np.linspace(2, 9, 8, dtype=np.float32)
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0, "attention_factor": 1.19}
    rope |= {"original_max_position_embeddings": original, "short_factor": short.tolist(), "long_factor": long.tolist()}
    keys: Changes = {
        "rope.scaling.type": (STRING, "longrope"),
        "rope.scaling.original_context_length": (U32, original),
        "rope.scaling.attn_factor": (F32, 1.19),
    }
    tensors = {"rope_factors_long.weight": long, "rope_factors_short.weight": short}
    return Case("LlamaConfig", "llama", {"rope_parameters": rope}, keys, tensors=tensors, context=context)


CASES = {
    "llama": Case("LlamaConfig", "llama", {"head_dim": 24}, heads(24)),
    "llama 3 factors": Case(
        "LlamaConfig",
        "llama",
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            }
        },
        factors=True,
    ),
    "longrope short": longrope(64, 64),
    "longrope long": longrope(32, 0),
    "mixtral": Case("MixtralConfig", "llama", LOCAL, {**EXPERTS, "rope.freq_base": (F32, 1e6)}),
    "qwen2": Case("Qwen2Config", "qwen2"),
    "qwen2 yarn": Case("Qwen2Config", "qwen2", {"rope_parameters": YARN}, YARN_KEYS),
    "qwen3": Case("Qwen3Config", "qwen3", {"head_dim": 24}, heads(24)),
    "qwen2moe": Case(
        "Qwen2MoeConfig",
        "qwen2moe",
        {**HF_EXPERTS, "moe_intermediate_size": 48, "shared_expert_intermediate_size": 80, "norm_topk_prob": False},
        {**EXPERTS, **width(48), "expert_shared_feed_forward_length": (U32, 80)},
    ),
    "qwen3moe": Case(
        "Qwen3MoeConfig",
        "qwen3moe",
        {**HF_EXPERTS, "head_dim": 24, "moe_intermediate_size": 48, "norm_topk_prob": True},
        {**EXPERTS, **width(48), **heads(24)},
    ),
    "olmoe": Case("OlmoeConfig", "olmoe", {**HF_EXPERTS, "num_key_value_heads": 4, "norm_topk_prob": False}, EXPERTS),
    "granite": Case("GraniteConfig", "granite", HF_SCALES, SCALES),
    "granitemoe": Case("GraniteMoeConfig", "granitemoe", {**LOCAL, **HF_SCALES}, {**EXPERTS, **SCALES}),
    "granitemoe shared": Case(
        "GraniteMoeSharedConfig",
        "granitemoe",
        {**LOCAL, **HF_SCALES, "shared_intermediate_size": 40},
        {**EXPERTS, **SCALES, "expert_shared_feed_forward_length": (U32, 40)},
    ),
    "glm4moe": Case(
        "Glm4MoeConfig",
        "glm4moe",
        {
            **ROUTED,
            "head_dim": 16,
            "moe_intermediate_size": 48,
            "use_qk_norm": True,
            "attention_bias": True,
            "routed_scaling_factor": 1.5,
        },
        {**EXPERTS, **SIGMOID, **width(48), **heads(16, rope=8), "expert_weights_scale": (F32, 1.5)},
    ),
    "gpt-oss": Case(
        "GptOssConfig",
        "gpt-oss",
        {**LOCAL, "head_dim": 16, "sliding_window": 7, "rope_parameters": YARN},
        {**EXPERTS, **width(96), **heads(16), **YARN_KEYS, "attention.sliding_window": (U32, 7)},
    ),
    "deepseek v2 lite": Case(
        "DeepseekV2Config",
        "deepseek2",
        {**LATENT, **ROUTED, "q_lora_rank": None, "moe_intermediate_size": 48, "routed_scaling_factor": 1.0},
        {
            **EXPERTS,
            **LATENT_KEYS,
            **width(48),
            "expert_shared_count": (U32, 1),
            "leading_dense_block_count": (U32, 1),
            "expert_gating_func": (U32, 1),
        },
    ),
    "deepseek v3": Case(
        "DeepseekV3Config",
        "deepseek2",
        {
            **LATENT,
            **ROUTED,
            "q_lora_rank": 28,
            "moe_intermediate_size": 48,
            "n_group": 4,
            "topk_group": 2,
            "routed_scaling_factor": 2.5,
            "rope_parameters": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0},
        },
        {
            **EXPERTS,
            **LATENT_KEYS,
            **SIGMOID,
            **YARN_KEYS,
            **width(48),
            "rope.scaling.yarn_log_multiplier": (F32, 0.1),
            "attention.q_lora_rank": (U32, 28),
            "expert_group_count": (U32, 4),
            "expert_group_used_count": (U32, 2),
            "expert_weights_scale": (F32, 2.5),
        },
    ),
    "gemma3": Case(
        "Gemma3TextConfig",
        "gemma3",
        {"num_hidden_layers": 7, "head_dim": 16, "sliding_window": 7, "query_pre_attn_scalar": 16},
        {**heads(16), "attention.sliding_window": (U32, 7), "rope.freq_base": (F32, 1e6)},
        limit=GELU_STEPS,
    ),
}


def random_model(case: Case, seed: int) -> Any:
    """Weights large enough that every part of the model shows in the logits."""
    import transformers

    config = getattr(transformers, case.config)(**{**BASE, **case.settings})
    config._attn_implementation = "eager"  # sinks
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            noise = torch.randn(tensor.shape, generator=generator)
            if "norm" in name:
                tensor.copy_(0.2 * noise + (case.architecture != "gemma3"))
            else:
                tensor.copy_(noise / tensor.shape[-1] ** 0.5 if tensor.ndim > 1 else 0.2 * noise)
    return model


def rope_factors(model: Any) -> dict[str, Array]:
    angles = model.model.rotary_emb.inv_freq.numpy()
    plain = 10000.0 ** (-np.arange(len(angles)) / len(angles))
    return {"rope_freqs.weight": np.asarray(plain / angles, np.float32)}


@pytest.mark.parametrize("name", CASES)
def test_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model = random_model(case, seed=7)
    extra = {**case.tensors, **(rope_factors(model) if case.factors else {})}
    path = export(model, tmp_path / "model.gguf", case.architecture, case.keys, extra)
    tokens = np.random.default_rng(3).integers(0, len(WORDS), 41).tolist()
    with torch.no_grad():
        wanted = model(torch.tensor([tokens])).logits[0].numpy()
    for backend in ("reference", "cpu"):
        settings = EngineSettings(backend=backend, kv_type_k="f32", kv_type_v="f32", threads=2, context=case.context)
        logits, _ = run_logits(path, tokens, 0, settings)
        assert relative_errors(logits, wanted).max() < case.limit, backend
