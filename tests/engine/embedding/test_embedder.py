"""Vectors of sentence-transformers folders and GGUF files; of MiniLM against sentence-transformers itself."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.embedding import NativeEmbedder, can_embed
from engine.embedding.weights import FOLDER_LAYER, FOLDER_NAMES, GGUF_LAYER, GGUF_NAMES
from engine.errors import ModelFileError, UnsupportedModel
from tests.engine.gguf_bytes import ARRAY, F32, STRING, U32, Tensor, gguf, pair

HIDDEN, HEADS, FFN, LAYERS, LONGEST = 64, 4, 128, 2, 32
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "a", "!", "cat", "."]
TEXTS = ["Unaffable cat!", "a", "", "xyz a. cat a", "x" * 200, " ".join(["cat"] * 50)]


def tensors() -> dict[str, NDArray[np.float32]]:
    """By the names of sentence-transformers' files."""
    rng = np.random.default_rng(11)
    shapes = {
        "query": (HIDDEN, HIDDEN), "key": (HIDDEN, HIDDEN), "value": (HIDDEN, HIDDEN), "out": (HIDDEN, HIDDEN),
        "attention_norm": (HIDDEN,), "up": (FFN, HIDDEN), "down": (HIDDEN, FFN), "ffn_norm": (HIDDEN,),
    }  # fmt: skip
    made: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "embeddings.position_embeddings.weight": (LONGEST, HIDDEN),
        "embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
    }
    for n in range(LAYERS):
        for part, shape in shapes.items():
            made[FOLDER_LAYER.format(n) + FOLDER_NAMES[part] + ".weight"] = shape
            made[FOLDER_LAYER.format(n) + FOLDER_NAMES[part] + ".bias"] = shape[:1]
    return {name: (rng.standard_normal(shape) * shape[-1] ** -0.4).astype(np.float32) for name, shape in made.items()}


def safetensors(values: dict[str, NDArray[np.float32]], kind: str) -> bytes:
    data, header = b"", {}
    for name, value in values.items():
        raw = value.astype("<f4").tobytes() if kind == "F32" else (value.view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps({"__metadata__": {"format": "pt"}} | header).encode()
    return len(head).to_bytes(8, "little") + head + data


def folder(path: Path, kind: str = "F32", pooling: str = "mean_tokens") -> Path:
    config = {
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "layer_norm_eps": 1e-12,
    }  # fmt: skip
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling", "Normalize")]
    (path / "1_Pooling").mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    (path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (path / "model.safetensors").write_bytes(safetensors(tensors(), kind))
    return path


def gguf_file(path: Path) -> Path:
    names = {
        "embeddings.word_embeddings.weight": "token_embd.weight",
        "embeddings.position_embeddings.weight": "position_embd.weight",
        "embeddings.token_type_embeddings.weight": "token_types.weight",
        "embeddings.LayerNorm.weight": "token_embd_norm.weight",
        "embeddings.LayerNorm.bias": "token_embd_norm.bias",
    }
    for n in range(LAYERS):
        for part in FOLDER_NAMES:
            for end in (".weight", ".bias"):
                names[FOLDER_LAYER.format(n) + FOLDER_NAMES[part] + end] = GGUF_LAYER.format(n) + GGUF_NAMES[part] + end
    texts = [w[2:] if w.startswith("##") else w if w.startswith("[") else "▁" + w for w in WORDS]
    pairs = [
        pair("general.architecture", STRING, "bert"), pair("bert.block_count", U32, LAYERS),
        pair("bert.attention.head_count", U32, HEADS), pair("bert.attention.layer_norm_epsilon", F32, 1e-12),
        pair("tokenizer.ggml.model", STRING, "bert"), pair("tokenizer.ggml.tokens", ARRAY, (STRING, texts)),
        pair("tokenizer.ggml.unknown_token_id", U32, 1),
    ]  # fmt: skip
    stored = [Tensor(names[name], value.shape[::-1], 0, value.tobytes()) for name, value in tensors().items()]
    path.write_bytes(gguf(pairs, stored))
    return path


def test_a_folder_and_a_gguf_file_of_one_model_agree(tmp_path: Path) -> None:
    made, file = folder(tmp_path / "model"), gguf_file(tmp_path / "model.gguf")
    assert can_embed(made)
    assert can_embed(file)
    embedder = NativeEmbedder(made, "one")
    assert (embedder.name, embedder.dimensions, embedder.loaded) == ("one", HIDDEN, False)
    vectors = embedder.embed(TEXTS)
    assert embedder.loaded
    assert vectors.shape == (len(TEXTS), HIDDEN)
    np.testing.assert_allclose(NativeEmbedder(file, "two").embed(TEXTS), vectors, atol=1e-6)
    np.testing.assert_array_equal(embedder.embed(["XYZ a. Cat A"])[0], vectors[3])  # unknown, uncased
    assert embedder.embed([]).shape == (0, HIDDEN)


def test_threads_and_halves_change_nothing_that_matters(tmp_path: Path) -> None:
    embedder = NativeEmbedder(folder(tmp_path / "full"), "", threads=3)
    vectors = embedder.embed(TEXTS * 5)
    with ThreadPoolExecutor(3) as pool:
        for other in pool.map(embedder.embed, [TEXTS * 5] * 6):
            np.testing.assert_array_equal(other, vectors)
    halves = NativeEmbedder(folder(tmp_path / "half", "BF16"), "").embed(TEXTS)
    assert np.sum(halves * vectors[: len(TEXTS)], axis=1).min() > 0.99


def test_first_token_is_another_vector(tmp_path: Path) -> None:
    mean = NativeEmbedder(folder(tmp_path / "mean"), "").embed(TEXTS[:1])[0]
    first = NativeEmbedder(folder(tmp_path / "first", pooling="cls_token"), "").embed(TEXTS[:1])[0]
    assert np.abs(mean - first).max() > 1e-3


def test_models_of_other_kinds_are_left_to_others(tmp_path: Path) -> None:
    made = folder(tmp_path / "other")
    for name, content in (("config.json", {"model_type": "mpnet"}), ("modules.json", [{"type": "x.CLIPModel"}])):
        kept = (made / name).read_text()
        (made / name).write_text(json.dumps(content))
        assert not can_embed(made)
        (made / name).write_text(kept)
    assert not can_embed(tmp_path / "nothing")
    assert not can_embed(folder(tmp_path / "max", pooling="max_tokens"))


def test_broken_models_are_told(tmp_path: Path) -> None:
    cut = folder(tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:-5000])
    with pytest.raises(ModelFileError, match=r"model\.safetensors"):
        NativeEmbedder(cut, "").embed(["a"])
    words = folder(tmp_path / "words")
    (words / "vocab.txt").write_text("a\nb\n")
    with pytest.raises(UnsupportedModel, match="CLS"):
        NativeEmbedder(words, "").embed(["a"])


@pytest.mark.model
def test_minilm_has_the_vectors_of_sentence_transformers(minilm_folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    assert can_embed(minilm_folder)
    source = Path(__file__).read_text().replace("[", "(").split("\n\n")  # names of special tokens are text to us
    parts = [part[:600] for part in source[:24]]
    texts = [*parts, "gnuplot", "What is a pipe?", "a", "Größe naïve 日本語 foo_bar 😀 " + "x" * 300, "word " * 400]
    vectors = NativeEmbedder(minilm_folder, "").embed(texts)
    expected = SentenceTransformer(str(minilm_folder), device="cpu").encode(texts, normalize_embeddings=True)
    assert np.sum(vectors * expected, axis=1).min() > 0.999


@pytest.mark.model
def test_torch_is_not_loaded(minilm_folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from engine.embedding import NativeEmbedder;"
        f"NativeEmbedder(Path({str(minilm_folder)!r}), '').embed(['a']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False).returncode == 0
