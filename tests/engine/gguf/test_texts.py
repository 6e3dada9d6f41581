"""Packed strings: as a list of them, but for memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.gguf import GgufFile, MetadataArray
from tests.engine.gguf_bytes import ARRAY, STRING, U32, gguf, pair

WORDS = ["", "a", "Grüße", "▁the", "", b"half \xe2\x82", "x" * 300]
SHOWN = ["", "a", "Grüße", "▁the", "", "half �", "x" * 300]


def opened(folder: Path) -> GgufFile:
    path = folder / "texts.gguf"
    path.write_bytes(gguf([pair("words", ARRAY, (STRING, WORDS)), pair("numbers", ARRAY, (U32, [1, 2]))]))
    return GgufFile.open(path)


def test_texts_are_as_the_list_and_outlive_the_file(tmp_path: Path) -> None:
    with opened(tmp_path) as file:
        array = file.metadata["words"]
        assert isinstance(array, MetadataArray)
        texts = array.texts()
        assert array.tolist() == SHOWN
    assert len(texts) == len(SHOWN)
    assert list(texts) == SHOWN
    assert [texts[i] for i in range(-len(SHOWN), len(SHOWN))] == SHOWN * 2
    assert texts[1:6:2] == SHOWN[1:6:2]
    with pytest.raises(IndexError):
        texts[len(SHOWN)]


def test_numbers_are_no_texts(tmp_path: Path) -> None:
    with opened(tmp_path) as file:
        array = file.metadata["numbers"]
        assert isinstance(array, MetadataArray)
        with pytest.raises(TypeError, match="uint32"):
            array.texts()
