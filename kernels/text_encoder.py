"""A BERT text encoder in native code: token ids to unit vectors, the GIL released inside."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from kernels.native_program import default_isa

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Dense:
    """y = x @ weight.T + bias; weight [rows, columns], bias [rows]."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True)
class EncoderLayer:
    """`norm_*` are (weight, bias) of the layer norms after attention and after the feed-forward part."""

    query: Dense
    key: Dense
    value: Dense
    out: Dense
    attention_norm: Dense
    up: Dense
    down: Dense
    ffn_norm: Dense


@dataclass(frozen=True)
class EncoderWeights:
    """Of a BERT without pooler. `words` [vocabulary, hidden], `positions` [longest, hidden], `type` [hidden].

    `first_token`: a text's vector is that of its first token, else the mean of all its tokens' vectors.
    """

    words: Floats
    positions: Floats
    type: Floats
    norm: Dense
    layers: tuple[EncoderLayer, ...]
    heads: int
    eps: float
    first_token: bool = False


@dataclass(frozen=True)
class Prepared:
    """Texts one behind the other: `tokens` int32, and where each begins, the end of the last one too: int32."""

    tokens: NDArray[np.int32]
    starts: NDArray[np.int32]


def available() -> bool:
    """False where the compiled module is older than this file."""
    return hasattr(importlib.import_module("kernels._native"), "Encoder")


class TextEncoder:
    """Usable from several threads at once; the packed matrices are shared, tables stay where they are.

    Attributes:
        longest: tokens a text may have; dimensions: of a vector.

    Errors: ValueError for tensors that do not fit each other, or widths that are no multiples of 64 (heads: 16).
    """

    def __init__(self, weights: EncoderWeights, isa: str | None = None) -> None:
        self._tables = [weights.words, weights.positions, weights.type, weights.norm.weight, weights.norm.bias]
        layers = [tensor for layer in weights.layers for tensor in _tensors(layer, weights)]
        self.longest, self.dimensions = weights.positions.shape
        self._vocabulary = len(weights.words)
        tensors = [_checked(tensor) for tensor in (*self._tables, *layers)]
        self._tables = [*self._tables, *(tensor for tensor in layers if tensor.ndim == 1)]  # read while encoding
        native = importlib.import_module("kernels._native")
        self._native = native.Encoder(
            self.dimensions, weights.heads, len(weights.layers[0].up.weight), weights.eps, weights.first_token,
            [tensor.ctypes.data for tensor in tensors], isa or default_isa(),
        )  # fmt: skip

    def encode(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Unit vectors [len(texts), dimensions] of token ids. ValueError: an empty or too long text, an unknown id."""
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return self.run(self.prepared(texts))

    def prepared(self, texts: Sequence[Sequence[int]]) -> Prepared:
        """One or more texts for `run`. Errors as of `encode`."""
        lengths = [len(text) for text in texts]
        tokens = np.fromiter((token for text in texts for token in text), np.int32, sum(lengths))
        if min(lengths) < 1 or max(lengths) > self.longest:
            raise ValueError(f"texts of {min(lengths)} to {max(lengths)} tokens, 1 to {self.longest} are possible")
        if tokens.min() < 0 or tokens.max() >= self._vocabulary:
            raise ValueError(f"token ids {tokens.min()} to {tokens.max()}, {self._vocabulary} are known")
        return Prepared(tokens, np.array([0, *accumulate(lengths)], np.int32))

    def run(self, texts: Prepared) -> Floats:
        """Unit vectors. Next to nothing is done with the GIL held: it may run on a thread of the lowest priority."""
        out = np.empty((len(texts.starts) - 1, self.dimensions), np.float32)
        self._native.encode(texts.tokens, texts.starts, out)
        return out


def _checked(tensor: Floats) -> Floats:
    if tensor.dtype != np.float32 or not tensor.flags.c_contiguous:
        raise ValueError(f"a tensor of {tensor.dtype}, not contiguous float32")
    return tensor


def _tensors(layer: EncoderLayer, weights: EncoderWeights) -> list[Floats]:
    """In the order of LayerTensors in encoder.h, their shapes checked."""
    hidden, ffn = weights.words.shape[1], len(weights.layers[0].up.weight)
    square = (layer.query, layer.key, layer.value, layer.out)
    shapes: list[tuple[Dense, tuple[int, ...]]] = [(part, (hidden, hidden)) for part in square]
    shapes += [(layer.attention_norm, (hidden,)), (layer.up, (ffn, hidden)), (layer.down, (hidden, ffn))]
    shapes += [(layer.ffn_norm, (hidden,))]
    for part, shape in shapes:
        if part.weight.shape != shape or part.bias.shape != shape[:1]:
            raise ValueError(f"a tensor of shape {part.weight.shape} with a bias of {part.bias.shape}, not {shape}")
    return [tensor for part, _ in shapes for tensor in (part.weight, part.bias)]
