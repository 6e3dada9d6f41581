"""SentencePiece vocabularies against llama.cpp's ids, and what a small one does with odd text."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.gguf import GgufFile
from engine.tokenizer import Tokenizer, TokenStream
from tests.engine.gguf_bytes import ARRAY, BOOL, F32, I32, STRING
from tests.engine.parity import DATA
from tests.engine.tiny_model import Changes, saved

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


@cache
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "text" / "tokenize-sentencepiece.json").read_text())
    return found


def made(folder: Path, tokens: list[str], types: list[int], scores: list[float] | None, **keys: Any) -> Tokenizer:
    changes: Changes = {
        "tokenizer.ggml.model": (STRING, "llama"),
        "tokenizer.ggml.pre": None,
        "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, types)),
        "tokenizer.ggml.scores": None if scores is None else (ARRAY, (F32, scores)),
        "tokenizer.ggml.merges": None,
        "tokenizer.ggml.bos_token_id": None,
        "tokenizer.ggml.add_bos_token": None,
    }
    with GgufFile.open(saved(folder, {**changes, **{f"tokenizer.ggml.{k}": v for k, v in keys.items()}})) as file:
        return Tokenizer.from_gguf(file)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    data = stored()
    return made(tmp_path_factory.mktemp("spm"), data["tokens"], data["types"], data["scores"])


def test_reference_ids(small: Tokenizer) -> None:
    assert (small.bos, small.eos, small.add_bos, small.warnings) == (1, 2, True, ())
    assert len(stored()["cases"]) > 100
    for case in stored()["cases"]:
        assert small.encode(case["text"], special=True) == case["ids"], case["text"]
        assert small.encode(case["text"]) == case["ids_no_parse_special"], case["text"]


@pytest.fixture(scope="module")
def unprefixed(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    data, folder = stored(), tmp_path_factory.mktemp("spm")
    tokens, types, scores = [*data["tokens"], "▁"], [*data["types"], 1], [*data["scores"], -1e4]
    return made(folder, tokens, types, scores, add_space_prefix=(BOOL, False))


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_round_trip_of_arbitrary_text(unprefixed: Tokenizer, text: str) -> None:
    """The mark that stands for a space and the space itself cannot be told apart."""
    assert unprefixed.decode(unprefixed.encode(text)) == text.replace("▁", " ")


def test_a_space_is_added_only_where_text_begins(tmp_path: Path) -> None:
    tokens = ["<unk>", "<s>", "</s>", "▁", "a", "▁a", "b", "ab"]
    types, scores = [2, 3, 3, 1, 1, 1, 1, 1], [0.0, 0.0, 0.0, -9.0, -9.0, -1.0, -9.0, -2.0]
    tokenizer = made(tmp_path, tokens, types, scores)
    assert tokenizer.encode("ab") == [5, 6]  # "▁a" has the better score
    assert tokenizer.encode("ab", continues=True) == [7]
    assert tokenizer.encode("a<s>a", special=True) == [5, 1, 5]
    plain = made(tmp_path, tokens, types, scores, add_space_prefix=(BOOL, False))
    assert plain.encode("ab") == [7]


def test_tokens_with_inner_spaces_are_found(tmp_path: Path) -> None:
    tokens = ["<unk>", "<s>", "</s>", "▁", "a", "b", "a▁", "a▁b"]
    tokenizer = made(tmp_path, tokens, [2, 3, 3, 1, 1, 1, 1, 1], [0.0] * 8, add_space_prefix=(BOOL, False))
    assert tokenizer.encode("a b") == [7]
    assert tokenizer.encode("b a") == [5, 3, 4]


def test_bytes_stream_as_characters(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, ["<unk>", "<s>", "</s>", *BYTES], [2, 3, 3] + [6] * 256, [0.0] * 259)
    stream = TokenStream(tokenizer)
    pieces = [stream.push(token) for token in tokenizer.encode("é🙂", continues=True)]
    assert pieces == ["", "é", "", "", "", "🙂"]


def test_scores_are_required(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"tokenizer\.ggml\.scores"):
        made(tmp_path, ["a"], [1], None)
    with pytest.raises(ModelFileError, match="one score per token"):
        made(tmp_path, ["a", "b"], [1, 1], [0.0])


@pytest.mark.slow
def test_reference_ids_of_gemma() -> None:
    """Needs the Gemma 3 270M file, whose path PAGEKEEP_GEMMA names."""
    path = os.environ.get("PAGEKEEP_GEMMA")
    if not path:
        pytest.skip("PAGEKEEP_GEMMA does not name the model file")
    golden = json.loads((DATA / "text" / "tokenize-gemma3-270m-q4_k_m.json").read_text())
    with GgufFile.open(path) as file:
        tokenizer = Tokenizer.from_gguf(file)
    assert (tokenizer.bos, tokenizer.eos, tokenizer.add_bos) == (golden["bos"], golden["eos"], golden["add_bos"])
    assert sorted(tokenizer.eog_ids) == golden["eog"]
    for case in golden["cases"]:
        assert tokenizer.encode(case["text"], special=True) == case["ids"], case["text"]
        assert tokenizer.encode(case["text"]) == case["ids_no_parse_special"], case["text"]
        assert b"".join(map(tokenizer.token_bytes, case["ids"])).hex() == case["detok_hex"]
