"""A BERT's weights by their names in sentence-transformers folders and in GGUF files (general.architecture "bert")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.embedding.safetensors import SafeTensors
from engine.gguf import GgufFile
from engine.gguf.dequantise import dequantise
from kernels.text_encoder import Dense, EncoderLayer, EncoderWeights

Floats = NDArray[np.float32]
FOLDER_LAYER = "encoder.layer.{}."
FOLDER_NAMES = {
    "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
    "out": "attention.output.dense", "attention_norm": "attention.output.LayerNorm", "up": "intermediate.dense",
    "down": "output.dense", "ffn_norm": "output.LayerNorm",
}  # fmt: skip
GGUF_LAYER = "blk.{}."
GGUF_NAMES = {
    "query": "attn_q", "key": "attn_k", "value": "attn_v", "out": "attn_output", "attention_norm": "attn_output_norm",
    "up": "ffn_up", "down": "ffn_down", "ffn_norm": "layer_output_norm",
}  # fmt: skip
MEAN, FIRST = 1, 2  # bert.pooling_type


def from_folder(file: SafeTensors, layers: int, heads: int, eps: float, first_token: bool) -> EncoderWeights:
    """ModelFileError: a tensor is missing or cut short."""
    top = "bert." if "bert.embeddings.word_embeddings.weight" in file else ""

    def dense(name: str) -> Dense:
        return Dense(file.tensor(f"{top}{name}.weight"), file.tensor(f"{top}{name}.bias"))

    return EncoderWeights(
        words=file.tensor(f"{top}embeddings.word_embeddings.weight"),
        positions=file.tensor(f"{top}embeddings.position_embeddings.weight"),
        type=file.tensor(f"{top}embeddings.token_type_embeddings.weight")[0],
        norm=dense("embeddings.LayerNorm"),
        layers=tuple(_layer(dense, FOLDER_LAYER.format(n), FOLDER_NAMES) for n in range(layers)),
        heads=heads,
        eps=eps,
        first_token=first_token,
    )


def from_gguf(file: GgufFile) -> EncoderWeights:
    """KeyError: it lacks a tensor or key."""

    def tensor(name: str) -> Floats:
        info = file.tensors[name]
        return dequantise(file.raw(info), info.ggml_type, info.cols).reshape(info.shape[::-1])

    def dense(name: str) -> Dense:
        return Dense(tensor(f"{name}.weight"), tensor(f"{name}.bias"))

    def key(name: str) -> float:
        value = file.metadata[f"bert.{name}"]
        assert isinstance(value, int | float), name
        return value

    return EncoderWeights(
        words=tensor("token_embd.weight"),
        positions=tensor("position_embd.weight"),
        type=np.ascontiguousarray(np.atleast_2d(tensor("token_types.weight"))[0]),
        norm=dense("token_embd_norm"),
        layers=tuple(_layer(dense, GGUF_LAYER.format(n), GGUF_NAMES) for n in range(int(key("block_count")))),
        heads=int(key("attention.head_count")),
        eps=float(key("attention.layer_norm_epsilon")),
        first_token=file.metadata.get("bert.pooling_type", MEAN) == FIRST,
    )


def _layer(dense: Callable[[str], Dense], prefix: str, names: dict[str, str]) -> EncoderLayer:
    return EncoderLayer(**{part: dense(prefix + name) for part, name in names.items()})
