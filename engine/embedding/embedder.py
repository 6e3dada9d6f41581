"""Sentence vectors without torch: a BERT with mean or first-token pooling on our own kernels."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.embedding.safetensors import SafeTensors
from engine.embedding.weights import FIRST, MEAN, from_folder, from_gguf
from engine.embedding.word_pieces import WordPieces, from_lines
from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile
from engine.tokenizer.vocabulary import read_vocabulary
from kernels.native_program import lower_thread_priority
from kernels.text_encoder import EncoderWeights, TextEncoder, available

Floats = NDArray[np.float32]
WEIGHTS = "model.safetensors"
FEW_TEXTS = 4  # a question: on the caller's thread, at its priority


class NativeEmbedder:
    """Unit vectors of texts; loaded (0.1 s) with the first of them. Usable from any thread.

    Args:
        path: a folder in sentence-transformers' format that `can_embed`, or a GGUF file of architecture "bert".
        name: tells indexes whose vectors these are.
        threads: that many texts are encoded at once, where the rest of the program leaves room.
    """

    def __init__(self, path: Path, name: str, threads: int = 1) -> None:
        self._path = path
        self._threads = threads
        self._lock = threading.Lock()
        self._model: _Model | None = None
        self._pool: ThreadPoolExecutor | None = None
        self.name = name
        self.dimensions = _dimensions(path)

    @property
    def loaded(self) -> bool:
        return self._model is not None

    def embed(self, texts: Sequence[str]) -> Floats:
        """Unit vectors [len(texts), dimensions]. ModelFileError, UnsupportedModel: the model cannot be used."""
        with self._lock:
            self._model = model = self._model or _load(self._path)
            ids = [model.pieces.encode(text, model.longest) for text in texts]
            pool = self._pool = self._pool or ThreadPoolExecutor(
                self._threads, thread_name_prefix="embed", initializer=lower_thread_priority
            )
        if len(texts) <= FEW_TEXTS:
            return model.encoder.encode(ids)
        parts = [model.encoder.prepared(part) for part in _shared_out(ids, self._threads) if part]
        return np.concatenate(list(pool.map(model.encoder.run, parts)))


@dataclass(frozen=True)
class _Model:
    encoder: TextEncoder
    pieces: WordPieces
    longest: int


def can_embed(path: Path) -> bool:
    """Whether the folder or file is a model of this kind: BERT, GELU, an uncased vocabulary, mean or first token."""
    if not available():
        return False
    if path.is_file():
        with GgufFile.open(path) as file:
            return file.metadata.get("general.architecture") == "bert"
    config = _json(path / "config.json")
    lower = _json(path / "tokenizer_config.json").get("do_lower_case", True)
    kind = (config.get("model_type"), config.get("hidden_act"), config.get("position_embedding_type", "absolute"))
    files = all((path / name).is_file() for name in (WEIGHTS, "vocab.txt"))
    return kind == ("bert", "gelu", "absolute") and bool(lower) and files and _pooling(path) is not None


def _pooling(folder: Path) -> int | None:
    modules = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in _json(folder / "modules.json", [])]
    if modules not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        return None
    pooling = _json(folder / "1_Pooling" / "config.json")
    modes = {key for key, value in pooling.items() if key.startswith("pooling_mode_") and value is True}
    return {frozenset({"pooling_mode_mean_tokens"}): MEAN, frozenset({"pooling_mode_cls_token"}): FIRST}.get(
        frozenset(modes)
    )


def _load(path: Path) -> _Model:
    try:
        return _load_gguf(path) if path.is_file() else _load_folder(path)
    except (KeyError, ValueError, TypeError) as error:
        why = f"{path.name}: {error!r}."
        raise UnsupportedModel("This embedder cannot be used.", why, "Use another embedder.") from error


def _load_folder(folder: Path) -> _Model:
    config = _json(folder / "config.json")
    weights = from_folder(
        SafeTensors(folder / WEIGHTS), int(config["num_hidden_layers"]), int(config["num_attention_heads"]),
        float(config["layer_norm_eps"]), _pooling(folder) == FIRST,
    )  # fmt: skip
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    longest = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    return _model(weights, WordPieces(from_lines(lines[: len(weights.words)])), longest)


def _load_gguf(path: Path) -> _Model:
    with GgufFile.open(path) as file:
        return _model(from_gguf(file), WordPieces(read_vocabulary(file)), None)


def _model(weights: EncoderWeights, pieces: WordPieces, longest: int | None) -> _Model:
    encoder = TextEncoder(weights)
    return _Model(encoder, pieces, min(longest or encoder.longest, encoder.longest))


def _dimensions(path: Path) -> int:
    if path.is_file():
        with GgufFile.open(path) as file:
            return file.rows_cols("token_embd.weight")[1]
    return int(_json(path / "config.json").get("hidden_size", 0))


def _json(path: Path, default: Any = None) -> Any:
    """The file's content; the default ({}) where there is none. ModelFileError: it is no JSON."""
    if not path.is_file():
        return {} if default is None else default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelFileError(f"{path.name} cannot be read.", str(error), "Download the embedder again.") from error


def _shared_out(texts: list[list[int]], parts: int) -> list[list[list[int]]]:
    """The texts in order, in runs of about equal numbers of tokens."""
    ends = list(accumulate(map(len, texts)))
    inner = [int(np.searchsorted(ends, ends[-1] * n / parts)) for n in range(1, parts)]
    return [texts[first:last] for first, last in pairwise([0, *inner, len(texts)])]
