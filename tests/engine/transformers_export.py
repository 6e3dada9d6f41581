"""A model of `transformers` as a GGUF file: the tensor names and row orders of llama.cpp's converter, weights as F32.

Families whose rope rotates neighbouring channels (RopeKind.NORM) have the rows of q and k reordered, as `transformers`
rotates halves; DeepSeek's rotated channels are neighbours in both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.engine.gguf_bytes import F32, STRING, U32, Tensor, gguf, pair
from tests.engine.tiny_model import KEYS, Changes

Array = npt.NDArray[np.float32]

_TOP = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm", "lm_head.weight": "output"}
_PARTS = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "self_attn.sinks": "attn_sinks",
    **{f"self_attn.{part}_proj": f"attn_{part}" for part in ("q", "k", "v", "q_b", "q_a", "kv_b")},
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
    "block_sparse_moe.router": "ffn_gate_inp",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "shared_mlp.output_linear": "ffn_down_shexp",
    **{f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")},
    **{f"mlp.shared_expert.{part}_proj": f"ffn_{part}_shexp" for part in ("gate", "up", "down")},
    **{f"mlp.shared_experts.{part}_proj": f"ffn_{part}_shexp" for part in ("gate", "up", "down")},
}
_INTERLEAVED = {"llama", "granite", "granitemoe"}


def export(model: Any, path: Path, architecture: str, keys: Changes, extra: Mapping[str, Array] | None = None) -> Path:
    """`keys`: without the architecture's prefix, added to what every model states; `extra`: further tensors."""
    config = model.config
    stated: Changes = {
        "block_count": (U32, config.num_hidden_layers),
        "context_length": (U32, config.max_position_embeddings),
        "embedding_length": (U32, config.hidden_size),
        "feed_forward_length": (U32, config.intermediate_size),
        "attention.head_count": (U32, config.num_attention_heads),
        "attention.head_count_kv": (U32, config.num_key_value_heads),
        "attention.layer_norm_rms_epsilon": (F32, config.rms_norm_eps),
    }
    pairs: dict[str, Any] = {key: typed for key, typed in KEYS.items() if not key.startswith("llama.")}
    pairs["general.architecture"] = (STRING, architecture)
    pairs |= {f"{architecture}.{key}": typed for key, typed in {**stated, **keys}.items()}
    tensors = {**dict(_tensors(model, architecture)), **(extra or {})}
    written = [Tensor(n, t.shape[::-1], data=np.ascontiguousarray(t, "<f4").tobytes()) for n, t in tensors.items()]
    path.write_bytes(gguf([pair(key, *typed) for key, typed in pairs.items() if typed is not None], written))
    return path


def _tensors(model: Any, architecture: str) -> Iterator[tuple[str, Array]]:
    for name, tensor in model.state_dict().items():
        data = tensor.float().numpy()
        if architecture == "gemma3" and "norm" in name:
            data = data + 1
        if name in _TOP:
            yield f"{_TOP[name]}.weight", data
            continue
        found = re.fullmatch(r"model\.layers\.(\d+)\.(.*?)(?:\.(weight|bias))?", name)
        assert found is not None, name
        for part, piece in _parts(model.config, architecture, found[2], found[3] or "weight", data):
            yield f"blk.{found[1]}.{part}", piece


def _parts(config: Any, architecture: str, name: str, kind: str, data: Array) -> Iterator[tuple[str, Array]]:
    if ".experts.gate_up_proj" in name or "input_linear" in name:
        suffix = "shexp" if "input_linear" in name else "exps"
        kind = "bias" if name.endswith("_bias") else kind
        if architecture == "gpt-oss":  # gate and up rows take turns, and the matrices are stored inputs first
            data = data if kind == "bias" else data.swapaxes(1, 2)
            gate, up = data[:, ::2], data[:, 1::2]
        else:
            gate, up = np.split(data, 2, axis=-2)
        yield from ((f"ffn_{part}_{suffix}.{kind}", piece) for part, piece in (("gate", gate), ("up", up)))
    elif ".experts.down_proj" in name:
        bias = name.endswith("_bias")
        turned = architecture == "gpt-oss" and not bias
        yield f"ffn_down_exps.{'bias' if bias else kind}", data.swapaxes(1, 2) if turned else data
    elif name.endswith("e_score_correction_bias"):
        yield "exp_probs_b.bias", data
    else:
        part = _PARTS[name]
        if part in ("attn_q", "attn_k") and architecture in _INTERLEAVED:
            heads = config.num_attention_heads if part == "attn_q" else config.num_key_value_heads
            data = data.reshape(heads, 2, -1, *data.shape[1:]).swapaxes(1, 2).reshape(data.shape)
        if (
            part == "ffn_norm"
            and name.startswith("post_attention")
            and architecture in ("gemma3", "gpt-oss", "glm4moe")
        ):
            part = "post_attention_norm"
        yield f"{part}.{kind}", data.reshape(-1) if part == "ffn_gate_inp_shexp" else data
