"""The encoder against plain numpy in float64, at every level, with texts of odd lengths."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.text_encoder import Dense, EncoderLayer, EncoderWeights, TextEncoder

VOCABULARY, LONGEST = 40, 48
LENGTHS = (1, 2, 5, 17, 33, 48, 3)
Array = NDArray[np.float64]


def weights(hidden: int, heads: int, ffn: int, first_token: bool = False, seed: int = 3) -> EncoderWeights:
    rng = np.random.default_rng(seed)

    def normal(*shape: int, spread: float = 1.0) -> NDArray[np.float32]:
        return (spread * rng.standard_normal(shape)).astype(np.float32)

    def dense(rows: int, cols: int) -> Dense:
        return Dense(normal(rows, cols, spread=cols**-0.5), normal(rows, spread=0.1))

    def norm() -> Dense:
        return Dense(1 + normal(hidden, spread=0.1), normal(hidden, spread=0.1))

    layers = tuple(
        EncoderLayer(
            query=dense(hidden, hidden), key=dense(hidden, hidden), value=dense(hidden, hidden),
            out=dense(hidden, hidden), attention_norm=norm(), up=dense(ffn, hidden), down=dense(hidden, ffn),
            ffn_norm=norm(),
        )
        for _ in range(2)
    )  # fmt: skip
    tables = normal(VOCABULARY, hidden), normal(LONGEST, hidden), normal(hidden)
    return EncoderWeights(*tables, norm(), layers, heads, 1e-12, first_token)


def applied(part: Dense, x: Array) -> Array:
    return x @ part.weight.T.astype(np.float64) + part.bias


def normed(part: Dense, x: Array, eps: float) -> Array:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * part.weight + part.bias


def attended(layer: EncoderLayer, x: Array, heads: int) -> Array:
    parts = (layer.query, layer.key, layer.value)
    q, k, v = (applied(part, x).reshape(len(x), heads, -1).swapaxes(0, 1) for part in parts)
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    shares = np.exp(scores - scores.max(2, keepdims=True))
    return (shares / shares.sum(2, keepdims=True) @ v).swapaxes(0, 1).reshape(x.shape)


def reference(w: EncoderWeights, ids: list[int]) -> Array:
    x = normed(w.norm, w.words[ids].astype(np.float64) + w.positions[: len(ids)] + w.type, w.eps)
    for layer in w.layers:
        x = normed(layer.attention_norm, x + applied(layer.out, attended(layer, x, w.heads)), w.eps)
        up = applied(layer.up, x)
        gelu = up * (1 + np.vectorize(erf)(up / np.sqrt(2))) / 2
        x = normed(layer.ffn_norm, x + applied(layer.down, gelu), w.eps)
    vector = x[0] if w.first_token else x.mean(0)
    return np.asarray(vector / np.linalg.norm(vector))


def texts(seed: int = 5) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, VOCABULARY, n).tolist() for n in LENGTHS]


@pytest.mark.parametrize(("hidden", "heads", "ffn", "first_token"), [(64, 4, 128, False), (128, 2, 192, True)])
def test_vectors_of_every_level(isa: str, hidden: int, heads: int, ffn: int, first_token: bool) -> None:
    w = weights(hidden, heads, ffn, first_token)
    vectors = TextEncoder(w, isa).encode(texts())
    assert vectors.shape == (len(LENGTHS), hidden)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for vector, ids in zip(vectors, texts(), strict=True):
        assert vector @ reference(w, ids) > 0.999


def test_a_text_has_the_same_vector_alone_and_among_others(isa: str) -> None:
    encoder = TextEncoder(weights(64, 4, 128), isa)
    many = encoder.encode(texts() * 3)  # more than pass through together
    for number, ids in enumerate(texts()):
        np.testing.assert_array_equal(encoder.encode([ids])[0], many[number])
        np.testing.assert_array_equal(many[number], many[number + 2 * len(LENGTHS)])


def test_what_cannot_be_encoded() -> None:
    encoder = TextEncoder(weights(64, 4, 128))
    assert encoder.encode([]).shape == (0, 64)
    for wrong in ([[]], [[1] * (LONGEST + 1)], [[VOCABULARY]], [[-1]]):
        with pytest.raises(ValueError, match=r"tokens|ids"):
            encoder.encode(wrong)
    with pytest.raises(ValueError, match="multiples"):
        TextEncoder(weights(96, 4, 128))
    w = weights(64, 4, 128)
    with pytest.raises(ValueError, match="shape"):
        TextEncoder(EncoderWeights(w.words[:, :32].copy(), w.positions, w.type, w.norm, w.layers, w.heads, w.eps))
