"""A whole llama model of 8 channels and 96 tokens whose keys and tensors a test may change one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.gguf_bytes import ARRAY, BOOL, F32, I32, STRING, U32, Tensor, gguf, pair

WORDS = [*(chr(code) for code in range(0x21, 0x7F)), "ab", "<s>"]
BOS = len(WORDS) - 1

Typed = tuple[int, Any]
Changes = Mapping[str, Typed | None]
Shapes = Mapping[str, tuple[int, ...] | None]

KEYS: dict[str, Typed] = {
    "general.architecture": (STRING, "llama"),
    "general.name": (STRING, "Tiny"),
    "llama.block_count": (U32, 2),
    "llama.context_length": (U32, 32),
    "llama.embedding_length": (U32, 8),
    "llama.feed_forward_length": (U32, 16),
    "llama.attention.head_count": (U32, 2),
    "llama.attention.head_count_kv": (ARRAY, (I32, [1, 2])),
    "llama.attention.layer_norm_rms_epsilon": (F32, 1e-5),
    "tokenizer.ggml.model": (STRING, "gpt2"),
    "tokenizer.ggml.pre": (STRING, "smollm"),
    "tokenizer.ggml.tokens": (ARRAY, (STRING, WORDS)),
    "tokenizer.ggml.token_type": (ARRAY, (I32, [1] * BOS + [3])),
    "tokenizer.ggml.merges": (ARRAY, (STRING, ["a b"])),
    "tokenizer.ggml.bos_token_id": (U32, BOS),
    "tokenizer.ggml.add_bos_token": (BOOL, True),
}

SHAPES: dict[str, tuple[int, ...]] = {
    "token_embd.weight": (8, len(WORDS)),
    "output_norm.weight": (8,),
} | {
    f"blk.{layer}.{name}.weight": shape
    for layer, kv_heads in enumerate((1, 2))
    for name, shape in {
        "attn_norm": (8,),
        "attn_q": (8, 8),
        "attn_k": (8, 4 * kv_heads),
        "attn_v": (8, 4 * kv_heads),
        "attn_output": (8, 8),
        "ffn_norm": (8,),
        "ffn_gate": (8, 16),
        "ffn_up": (8, 16),
        "ffn_down": (16, 8),
    }.items()
}


def content(keys: Changes | None = None, shapes: Shapes | None = None) -> bytes:
    """The bytes of the file; None removes a key or a tensor. All tensors are F32 zeros but rope factors: ones."""
    pairs = {**KEYS, **(keys or {})}
    tensors = {**SHAPES, **(shapes or {})}
    return gguf(
        [pair(key, *typed) for key, typed in pairs.items() if typed is not None],
        [Tensor(name, shape, data=_data(name, shape)) for name, shape in tensors.items() if shape is not None],
    )


def saved(folder: Path, keys: Changes | None = None, shapes: Shapes | None = None) -> Path:
    path = folder / "tiny.gguf"
    path.write_bytes(content(keys, shapes))
    return path


def _data(name: str, shape: tuple[int, ...]) -> bytes:
    value = 1.0 if name.startswith("rope") else 0.0
    return np.full(math.prod(shape), value, "<f4").tobytes()
