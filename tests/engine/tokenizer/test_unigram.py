"""Unigram (T5) and Gemma 4 vocabularies against llama.cpp's ids, over made vocabularies; round trips."""

from __future__ import annotations

import json
from array import array
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelFileError
from engine.tokenizer import Tokenizer
from engine.tokenizer.unigram import CharacterMap
from tests.engine.gguf_bytes import ARRAY, BOOL, F32, I32, STRING, U32
from tests.engine.parity import DATA
from tests.engine.tokenizer.test_tokenizer import made

BYTE = 0
REPLACED = {
    "\ufb01": "fi", "\u2460": "1", "\t": " ", "\n": " ", "e\u0301": "\u00e9", "\u00a0": " ", "\u3000": " ",
    "\uff28": "H", "\u200b": "", "\ufeff": "",
}  # fmt: skip
Case = tuple[str, list[int], list[int]]


@cache
def stored(name: str) -> Any:
    return json.loads((DATA / "text" / f"tokenize-{name}.json").read_text())


def charsmap(table: dict[bytes, bytes]) -> bytes:
    """SentencePiece's double array over the keys, one block of 256 units per node, and the replacements behind it."""
    root: dict[int, Any] = {}
    for key in table:
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
        node[-1] = key
    units, texts, todo = [0] * 256, b"\0", [(0, root)]
    while todo:
        index, node = todo.pop()
        block = len(units)
        units += [0] * 256
        units[index] |= (index ^ block) << 10
        for byte, child in node.items():
            if byte >= 0:
                units[block + byte] = byte
                todo.append((block + byte, child))
            else:
                units[index] |= 1 << 8
                units[block] = 1 << 31 | len(texts)
                texts += table[child] + b"\0"
    data = array("I", units).tobytes()
    return len(data).to_bytes(4, "little") + data + texts


def t5(folder: Path, *, merge: bool, mapped: bool = False) -> Tokenizer:
    data = stored("t5")
    table = {key.encode(): value.encode() for key, value in REPLACED.items()}
    keys: dict[str, Any] = {"precompiled_charsmap": (ARRAY, (BYTE, list(charsmap(table))))} if mapped else {}
    return made(
        folder,
        data["tokens"],
        model=(STRING, "t5"),
        scores=(ARRAY, (F32, data["scores"])),
        token_type=(ARRAY, (I32, data["types"])),
        add_space_prefix=(BOOL, True),
        remove_extra_whitespaces=(BOOL, merge),
        eos_token_id=(U32, 1),
        unknown_token_id=(U32, 2),
        **keys,
    )


def gemma4(folder: Path) -> Tokenizer:
    data = stored("gemma4")
    return made(
        folder,
        data["tokens"],
        model=(STRING, "gemma4"),
        merges=(ARRAY, (STRING, data["merges"])),
        token_type=(ARRAY, (I32, data["types"])),
        bos_token_id=(U32, 2),
        eos_token_id=(U32, 1),
    )


def assert_cases(tokenizer: Tokenizer, cases: list[Case]) -> None:
    assert len(cases) > 20
    for text, ids, plain in cases:
        assert tokenizer.encode(text, special=True) == ids, text
        assert tokenizer.encode(text) == plain, text


@pytest.mark.parametrize(("cases", "merge", "mapped"), [("merged", 1, 0), ("kept", 0, 0), ("mapped", 1, 1)])
def test_unigram_ids_are_those_of_the_reference(tmp_path: Path, cases: str, merge: int, mapped: int) -> None:
    tokenizer = t5(tmp_path, merge=bool(merge), mapped=bool(mapped))
    assert (tokenizer.bos, tokenizer.eos, tokenizer.add_bos) == (None, 1, False)
    assert_cases(tokenizer, stored("t5")[cases])


def test_gemma4_ids_are_those_of_the_reference(tmp_path: Path) -> None:
    tokenizer, data = gemma4(tmp_path), stored("gemma4")
    assert (tokenizer.bos, tokenizer.eos, tokenizer.add_bos) == (data["bos"], data["eos"], data["add_bos"])
    assert sorted(tokenizer.eog_ids) == data["eog"]
    assert_cases(tokenizer, data["cases"])


@pytest.fixture(scope="module")
def open_gemma4(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return gemma4(tmp_path_factory.mktemp("gemma4"))


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2581"), max_size=60))
def test_any_text_comes_back_from_gemma4(open_gemma4: Tokenizer, text: str) -> None:
    assert open_gemma4.decode(open_gemma4.encode(text)) == text


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_without_a_map_text_stays(text: str) -> None:
    raw = text.encode()
    assert CharacterMap(b"").apply(raw) == CharacterMap(charsmap({b"\xff": b""})).apply(raw) == text


def test_a_map_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="precompiled_charsmap"):
        made(
            tmp_path,
            ["<unk>", "\u2581a"],
            model=(STRING, "t5"),
            scores=(ARRAY, (F32, [0.0, -1.0])),
            unknown_token_id=(U32, 0),
            precompiled_charsmap=(ARRAY, (BYTE, [200, 0, 0, 0, 1])),
        )
