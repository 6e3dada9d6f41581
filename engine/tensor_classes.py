"""The part of a model that a GGUF tensor belongs to, by its name."""

from __future__ import annotations

import re
from typing import Literal

TensorClass = Literal["embedding", "attention", "norms", "dense_ffn", "router", "experts", "shared", "head", "other"]
TENSOR_CLASSES: tuple[TensorClass, ...] = (
    "embedding", "attention", "norms", "dense_ffn", "router", "shared", "experts", "head", "other",
)  # fmt: skip

_BLOCK = re.compile(r"blk\.(\d+)\.(.+)")
# In this order: the first match decides.
_PARTS: tuple[tuple[re.Pattern[str], TensorClass], ...] = tuple(
    (re.compile(pattern), kind)  # type: ignore[misc]
    for pattern, kind in (
        (r"ffn_(gate|up|down|gate_up)_exps\.|ffn_(gate|up|down)\.\d+\.", "experts"),
        (r"ffn_gate_inp\.|exp_probs_b\.", "router"),
        (r"ffn_.*_shexp\.", "shared"),
        (r".*norm\.", "norms"),
        (r"ffn_", "dense_ffn"),
        (r"attn_", "attention"),
    )
)
_WHOLE: dict[str, TensorClass] = {"token_embd": "embedding", "output": "head", "output_norm": "norms"}


def class_of(name: str) -> TensorClass:
    match = _BLOCK.fullmatch(name)
    if match is None:
        return _WHOLE.get(name.split(".")[0], "other")
    return next((kind for pattern, kind in _PARTS if pattern.match(match[2])), "other")


def layer_of(name: str) -> int:
    """-1 outside the layers."""
    match = _BLOCK.fullmatch(name)
    return int(match[1]) if match else -1
