"""WordPiece as in BERT vocabularies: words in lower case without accents, each cut greedily into the longest tokens.

In GGUF files a token that begins a word starts with U+2581, one inside a word has no mark (the converter strips "##").
Rules: BERT's uncased basic tokenizer (Devlin et al. 2019).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from engine.tokenizer.spm import SPACE
from engine.tokenizer.vocabulary import Vocabulary

_HAN = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class WordPieceEncoder:
    """Text to ids, without special tokens. A word of more than `longest_word` characters is unknown."""

    def __init__(self, vocabulary: Vocabulary, longest_word: int | None = None) -> None:
        self._longest_word = longest_word
        self._ids = vocabulary.ids
        self._unknown = vocabulary.unknown
        self._longest = max(map(len, vocabulary.texts), default=0)

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        return [token for word in _words(text) for token in self._bounded(word)]

    def id_of(self, text: str) -> int | None:
        return self._ids.get(text)

    def _bounded(self, word: str) -> list[int]:
        if self._longest_word is not None and len(word) > self._longest_word and self._unknown is not None:
            return [self._unknown]
        return self._word(SPACE + word)

    def _word(self, word: str) -> list[int]:
        """Tokens of a marked word; the unknown token alone where a part of it has none."""
        ids, start = [], 0
        while start < len(word):
            stop = min(len(word), start + self._longest)
            while stop > start and word[start:stop] not in self._ids:
                stop -= 1
            if stop == start:
                return [] if self._unknown is None else [self._unknown]
            ids.append(self._ids[word[start:stop]])
            start = stop
        return ids


def _words(text: str) -> Iterator[str]:
    """Runs between spaces; punctuation, ASCII symbols and Han characters are words of their own."""
    word = ""
    for character in unicodedata.normalize("NFD", text):
        category = unicodedata.category(character)
        if character.isspace() or category == "Zs" or _stands_alone(character, category):
            if word:
                yield word
            word = ""
            if not character.isspace() and category != "Zs":
                yield character.lower()
        elif category != "Mn" and character != "\ufffd" and not category.startswith("C"):
            word += character.lower()
    if word:
        yield word


def _stands_alone(character: str, category: str) -> bool:
    if category.startswith("P") or (character < "\x7f" and category.startswith("S")):
        return True
    return any(first <= ord(character) <= last for first, last in _HAN)
