"""WordPiece against the `tokenizers` library on a real embedder's vocabulary, and the rules on a small one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Reference

from engine.gguf import GgufFile
from engine.tokenizer import Tokenizer
from tests.engine.gguf_bytes import ARRAY, I32, STRING
from tests.engine.tiny_model import Changes, saved

PARTS = ["The", " ", "  ", "\n", "é", "東京", "ß", "Ünï", "🙂", "running", "un", "123", ".", ",", "-", "_", "\t", "#",
         "$", "x=1", "'", '"', "e\u0301", "İ", "ﬁ", "Ω", "\u200d", "¡", "€", "한국", "हिन्दी"]  # fmt: skip


def made(folder: Path, words: list[str]) -> Tokenizer:
    """`words` as in BERT's vocabulary file."""
    texts = [w if w.startswith("[") and w.endswith("]") else w[2:] if w.startswith("##") else "▁" + w for w in words]
    types = [3 if w.startswith("[") and w.endswith("]") else 1 for w in words]
    changes: Changes = {
        "tokenizer.ggml.model": (STRING, "bert"),
        "tokenizer.ggml.pre": None,
        "tokenizer.ggml.tokens": (ARRAY, (STRING, texts)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, types)),
        "tokenizer.ggml.merges": None,
        "tokenizer.ggml.bos_token_id": None,
        "tokenizer.ggml.add_bos_token": None,
    }
    with GgufFile.open(saved(folder, changes)) as file:
        return Tokenizer.from_gguf(file)


@pytest.mark.model
def test_ids_of_a_real_embedder(tmp_path: Path, minilm_folder: Path) -> None:
    reference = Reference.from_file(str(minilm_folder / "tokenizer.json"))
    reference.no_truncation()
    reference.no_padding()
    ids = reference.get_vocab()
    tokenizer = made(tmp_path, sorted(ids, key=lambda word: ids[word]))
    assert (tokenizer.bos, tokenizer.eos, tokenizer.add_bos) == (101, 102, True)
    rng = random.Random(7)
    for _ in range(500):
        text = "".join(rng.choice(PARTS) for _ in range(rng.randint(0, 20)))
        assert tokenizer.encode(text) == reference.encode(text, add_special_tokens=False).ids, text


def test_longest_parts_first_and_whole_words_unknown(tmp_path: Path) -> None:
    words = ["[PAD]"] * 100 + ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "##a", "!", "a"]
    tokenizer = made(tmp_path, words)
    assert tokenizer.encode("Unaffable !") == [103, 104, 105, 107]
    assert tokenizer.encode("unaffx a") == [100, 108]
    assert tokenizer.decode([108, 103, 104]) == " a unaff"
