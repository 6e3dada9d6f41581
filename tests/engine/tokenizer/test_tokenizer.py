"""Token ids against llama.cpp's, round trips of arbitrary text, special tokens, odd vocabularies."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import GgufFile, MetadataArray
from engine.tokenizer import Tokenizer
from engine.tokenizer.byte_map import BYTE_TO_CHARACTER
from tests.engine.gguf_bytes import ARRAY, BOOL, I32, STRING, U32
from tests.engine.parity import DATA
from tests.engine.tiny_model import Changes, saved

BYTES = list(BYTE_TO_CHARACTER)


def reference(name: str) -> dict[str, Any]:
    text = (DATA / "text" / f"tokenize-{name}.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def small() -> Tokenizer:
    """1,024 tokens of SmolLM2: its special tokens, its bytes (21 are missing) and its first merges."""
    with GgufFile.open(DATA / "models" / "llama-yarn-f32.gguf") as file:
        return Tokenizer.from_gguf(file)


def made(folder: Path, words: list[str], **keys: Any) -> Tokenizer:
    """A tokenizer over `words`; keyword arguments are `tokenizer.ggml` keys."""
    changes: Changes = {
        "tokenizer.ggml.tokens": (ARRAY, (STRING, words)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [1] * len(words))),
        "tokenizer.ggml.merges": None,
        "tokenizer.ggml.bos_token_id": None,
        "tokenizer.ggml.add_bos_token": None,
    }
    with GgufFile.open(saved(folder, {**changes, **{f"tokenizer.ggml.{k}": v for k, v in keys.items()}})) as file:
        return Tokenizer.from_gguf(file)


def assert_equal_to_reference(tokenizer: Tokenizer, name: str) -> None:
    stored = reference(name)
    assert tokenizer.vocabulary == stored["n_vocab"]
    assert (tokenizer.bos, tokenizer.eos, tokenizer.add_bos) == (stored["bos"], stored["eos"], stored["add_bos"])
    assert sorted(tokenizer.eog_ids) == stored["eog"]
    assert len(stored["cases"]) > 20
    for case in stored["cases"]:
        assert tokenizer.encode(case["text"], special=True) == case["ids"], case["text"]
        assert tokenizer.encode(case["text"]) == case["ids_no_parse_special"], case["text"]
        assert b"".join(map(tokenizer.token_bytes, case["ids"])).hex() == case["detok_hex"]


def test_reference_ids_of_the_small_vocabulary() -> None:
    assert_equal_to_reference(small(), "tiny-vocab1024")


@pytest.mark.model
def test_reference_ids_of_the_starter_model_and_its_load_time(starter_model: Path) -> None:
    loading, reading = [], []
    with GgufFile.open(starter_model) as file:
        for _ in range(4):
            started = time.thread_time()
            tokenizer = Tokenizer.from_gguf(file)
            loading.append(time.thread_time() - started)
            reading.append(plain_reading(file))
    assert_equal_to_reference(tokenizer, "smollm2-135m-q4_1")
    assert min(loading) < 4 * min(reading)  # measured 1.7, which is 0.12 s


def plain_reading(file: GgufFile) -> float:
    """Seconds of this thread for what nobody can load a vocabulary without: its strings, each in a table."""
    started = time.thread_time()
    for key in ("tokens", "merges"):
        texts = file.metadata[f"tokenizer.ggml.{key}"]
        assert isinstance(texts, MetadataArray)
        {tuple(text.split(" ")): place for place, text in enumerate(texts.texts())}
    return time.thread_time() - started


def kept(text: str) -> bytes:
    """The bytes of `text` that the small vocabulary has."""
    known = {byte for byte in range(256) if small().token_id(BYTE_TO_CHARACTER[byte]) is not None}
    return bytes(byte for byte in text.encode() if byte in known)


@given(st.text(max_size=80))
@settings(max_examples=400, deadline=None)
def test_round_trip_of_arbitrary_text(text: str) -> None:
    ids = small().encode(text)
    assert all(0 <= i < small().vocabulary for i in ids)
    assert b"".join(map(small().token_bytes, ids)) == kept(text)


@given(st.lists(st.sampled_from(["<|im_start|>", "<|im_end|>", "user", "\n", " x", "<", "é", "東"]), max_size=12))
@settings(max_examples=200, deadline=None)
def test_control_tokens_only_with_special(parts: list[str]) -> None:
    text = "".join(parts)
    plain, special = small().encode(text), small().encode(text, special=True)
    assert not any(small().is_control(i) for i in plain)
    assert sum(map(small().is_control, special)) == text.count("<|im_start|>") + text.count("<|im_end|>")
    assert b"".join(map(small().token_bytes, special)) == kept(text)


def test_dropped_bytes_do_not_let_their_neighbours_merge(tmp_path: Path) -> None:
    words = [c for c in BYTES if c != BYTE_TO_CHARACTER[4]] + ["ab"]
    tokenizer = made(tmp_path, words, merges=(ARRAY, (STRING, ["a b"])))
    assert tokenizer.encode("ab") == [len(words) - 1]
    assert tokenizer.encode("a\x04b") == [words.index("a"), words.index("b")]


def test_long_text_takes_the_same_cuts() -> None:
    line = "The price is memory: 12 experts, naïve café.\n"
    assert small().encode(line * 300) == small().encode(line) * 300


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    tokenizer = made(tmp_path, BYTES)
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a�b"
    assert tokenizer.decode(tokenizer.encode("\ud83d\ude42")) == "🙂"


def test_user_defined_tokens_are_words_longest_first(tmp_path: Path) -> None:
    words = [*BYTES, "<t>", "<t><t>", "<c>", "<unused>", "[byte]"]
    types = [1] * 256 + [4, 4, 3, 5, 6]
    tokenizer = made(tmp_path, words, token_type=(ARRAY, (I32, types)))
    assert tokenizer.encode("<t><t><t>") == [257, 256]
    assert tokenizer.encode("<c>", special=True) == [258]
    assert 258 not in tokenizer.encode("<c>")
    assert 259 not in tokenizer.encode("<unused>", special=True)
    assert tokenizer.decode([256, 258, 65]) == "<t><c>" + BYTES[65].encode().decode()
    assert tokenizer.decode([256, 258, 65], special=False) == "<t>" + BYTES[65]
    assert tokenizer.token_bytes(259) == b""


def test_merges_of_unknown_tokens_are_left_out(tmp_path: Path) -> None:
    merges = ["q zz", "x y", "broken", "a b"]
    tokenizer = made(tmp_path, [*BYTES, "xy"], merges=(ARRAY, (STRING, merges)))
    assert tokenizer.encode("xy") == [256]
    assert len(tokenizer.encode("ab")) == 2


def test_ignore_merges_takes_a_whole_piece(tmp_path: Path) -> None:
    words = [*BYTES, "hello"]
    assert made(tmp_path, words, pre=(STRING, "llama-bpe")).encode("hello") == [256]
    assert len(made(tmp_path, words, pre=(STRING, "qwen2")).encode("hello")) == 5


@pytest.mark.parametrize(("pre", "flag", "expected"), [("llama-bpe", None, True), ("llama-bpe", False, False),
                                                       ("qwen2", None, False), ("qwen2", True, True)])  # fmt: skip
def test_bos_by_key_else_by_pre_tokenizer(tmp_path: Path, pre: str, flag: bool | None, expected: bool) -> None:
    key = None if flag is None else (BOOL, flag)
    tokenizer = made(tmp_path, BYTES, pre=(STRING, pre), bos_token_id=(U32, 7), add_bos_token=key)
    assert tokenizer.add_bos is expected
    assert made(tmp_path, BYTES, pre=(STRING, pre), add_bos_token=(BOOL, True)).add_bos is False


def test_end_tokens_by_key_and_by_text(tmp_path: Path) -> None:
    words = [*BYTES, "<|eot_id|>", "<|end|>", "<|fim_pad|>", "<fim_pad>"]
    assert made(tmp_path, words, eos_token_id=(U32, 5)).eog_ids == {5, 256, 257, 258}
    assert made(tmp_path, words, fim_pad_token_id=(U32, 9)).eog_ids == {256, 257, 9}
    harmony = [*BYTES, "<|end|>", "<|return|>", "<|call|>"]
    assert made(tmp_path, harmony).eog_ids == {257, 258}
    assert made(tmp_path, BYTES, eos_token_id=(U32, 0xFFFFFFFF)).eog_ids == frozenset()


def test_unknown_pre_tokenizers_warn(tmp_path: Path) -> None:
    assert "'newest-bpe'" in made(tmp_path, BYTES, pre=(STRING, "newest-bpe")).warnings[0]
    assert "names no pre-tokenizer" in made(tmp_path, BYTES, pre=None).warnings[0]
    assert small().warnings == ()


@pytest.mark.parametrize("model", [(STRING, "plamo2"), (STRING, "rwkv"), None])
def test_other_tokenizer_models_are_refused_by_name(tmp_path: Path, model: Any) -> None:
    expected = "None" if model is None else repr(model[1])
    with pytest.raises(UnsupportedModel, match=f"Tokenizer model {expected} is not supported"):
        made(tmp_path, BYTES, model=model)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tokens", None),
        ("tokens", (U32, 3)),
        ("tokens", (ARRAY, (I32, [1, 2]))),
        ("tokens", (ARRAY, (STRING, []))),
        ("token_type", (ARRAY, (I32, [1, 1]))),
        ("token_type", (ARRAY, (STRING, ["1"] * 256))),
        ("merges", (ARRAY, (U32, [1]))),
        ("bos_token_id", (U32, 256)),
        ("eos_token_id", (STRING, "</s>")),
    ],
)
def test_broken_vocabularies_name_the_key(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(ModelFileError, match=rf"Key 'tokenizer\.ggml\.{key}'"):
        made(tmp_path, BYTES, **{key: value})


def test_ids_outside_the_vocabulary_are_refused() -> None:
    for wrong in (-1, 1024):
        with pytest.raises(IndexError, match="outside the vocabulary of 1024"):
            small().token_bytes(wrong)
