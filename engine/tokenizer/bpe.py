"""Byte-level BPE: the `tokenizers` library merges, vocabulary and merges come from the GGUF file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.tokenizer.byte_map import BYTE_TO_CHARACTER
from engine.tokenizer.pre_tokenizers import PreTokenizer
from engine.tokenizer.spm import SPACE
from engine.tokenizer.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Merger
    from tokenizers.models import BPE

_LONG = 4096  # characters; from here on the call goes through the form that releases the GIL


class BytePairEncoder:
    """Text to ids, without special tokens. Bytes that the vocabulary lacks are dropped, as llama.cpp does."""

    def __init__(self, vocabulary: Vocabulary, pre: PreTokenizer) -> None:
        self._size = len(vocabulary.texts)
        self._merger = _merger(vocabulary, pre)

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        if len(text) < _LONG:
            ids: list[int] = self._merger.encode(text, add_special_tokens=False).ids
        else:
            ids = self._merger.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids if max(ids, default=0) < self._size else [i for i in ids if i < self._size]

    def id_of(self, text: str) -> int | None:
        """The library's own table: the vocabulary's is not kept."""
        found: int | None = self._merger.token_to_id(text)
        return found if found is None or found < self._size else None


class SpacedPairEncoder:
    """BPE over characters, spaces written U+2581 (Gemma 4): cut at line breaks only, else bytes <0xNN>."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        from tokenizers import Regex, Tokenizer, pre_tokenizers

        self._merger = Tokenizer(_model(vocabulary, vocabulary.ids, ignore_merges=False, byte_fallback=True))
        self._merger.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n+"), "isolated")

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        ids: list[int] = self._merger.encode(text.replace(" ", SPACE), add_special_tokens=False).ids
        return ids

    def id_of(self, text: str) -> int | None:
        found: int | None = self._merger.token_to_id(text)
        return found


def _merger(vocabulary: Vocabulary, pre: PreTokenizer) -> Merger:
    from tokenizers import Regex, Tokenizer, pre_tokenizers

    merger = Tokenizer(_model(vocabulary, _with_all_bytes(vocabulary), pre.ignore_merges))
    splits = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in pre.passes]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    merger.pre_tokenizer = pre_tokenizers.Sequence([*splits, byte_level])
    return merger


def _model(vocabulary: Vocabulary, ids: dict[str, int], ignore_merges: bool, byte_fallback: bool = False) -> BPE:
    from tokenizers import models

    pairs, rules = _pairs(vocabulary.merges), {"ignore_merges": ignore_merges}
    if byte_fallback:
        rules["byte_fallback"] = True
    try:
        return models.BPE(ids, pairs, **rules)
    except Exception:  # the library's own type; a merge of unknown tokens cannot be used, the others can
        usable = [(a, b) for a, b in pairs if a in ids and b in ids and a + b in ids]
        return models.BPE(ids, usable, **rules)


def _with_all_bytes(vocabulary: Vocabulary) -> dict[str, int]:
    """The ids, and ids beyond the vocabulary for missing bytes: nothing may merge across a dropped byte."""
    missing = [character for character in BYTE_TO_CHARACTER if character not in vocabulary.ids]
    size = len(vocabulary.texts)
    return vocabulary.ids | {character: size + i for i, character in enumerate(missing)}


def _pairs(merges: Iterable[str]) -> list[tuple[str, str]]:
    """A merge is cut at its first space after index 0: a token may itself begin with one."""
    pairs = []
    for merge in merges:
        first, _, second = merge.partition(" ")
        pairs.append((first, second) if first else _led_by_space(merge))
    return pairs


def _led_by_space(merge: str) -> tuple[str, str]:
    cut = merge.find(" ", 1)
    return (merge[:cut], merge[cut + 1 :]) if cut > 0 else (merge, "")
