"""SentencePiece unigram as in T5 vocabularies: of all ways to cut the text, the one with the best sum of scores.

Text is normalised first by the file's `precompiled_charsmap` (SentencePiece's builder: a double array of byte prefixes
whose leaves name replacement texts). Formulas: Kudo 2018, "Subword Regularization", Viterbi; a character without a
token costs the lowest score less 10.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.tokenizer.spm import SPACE
from engine.tokenizer.vocabulary import TokenType, Vocabulary

if TYPE_CHECKING:
    from tokenizers.models import Unigram

_USED = (TokenType.NORMAL, TokenType.USER_DEFINED, TokenType.UNUSED)


@dataclass(frozen=True)
class SpaceRules:
    """`prefix`: a space before the text. `merge`: runs of spaces become one, none at the ends."""

    prefix: bool
    merge: bool


class UnigramEncoder:
    """Text to ids, without special tokens. Safe to use from several threads."""

    def __init__(self, vocabulary: Vocabulary, charsmap: bytes, rules: SpaceRules) -> None:
        """ValueError: a map that is cut off, or a vocabulary without an unknown token."""
        self._rules = rules
        self._map = CharacterMap(charsmap)
        self._model = _model(vocabulary)
        self._ids = vocabulary.ids

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        spaced = self._spaced(self._map.apply(text.encode()))
        return [token.id for token in self._model.tokenize(spaced)] if spaced else []

    def id_of(self, text: str) -> int | None:
        return self._ids.get(text)

    def _spaced(self, text: str) -> str:
        if self._rules.merge:
            words = [word for word in text.split(" ") if word]
            return "".join(SPACE + word for word in words)
        prefix = SPACE if self._rules.prefix and text.strip(" ") else ""
        head = len(text) - len(text.lstrip(" "))
        return (SPACE * head + prefix + text[head:]).replace(" ", SPACE)


def _model(vocabulary: Vocabulary) -> Unigram:
    from tokenizers import models

    if vocabulary.unknown is None or not vocabulary.scores:
        raise ValueError("no unknown token or no scores")
    normal = [
        score for score, kind in zip(vocabulary.scores, vocabulary.types, strict=False) if kind == TokenType.NORMAL
    ]
    least = min(normal, default=0.0)
    pieces = [_piece(vocabulary, i, least) for i in range(len(vocabulary.texts))]
    return models.Unigram(pieces, vocabulary.unknown, False)


def _piece(vocabulary: Vocabulary, token: int, least: float) -> tuple[str, float]:
    """Tokens that are no text get a name that no text contains."""
    kind = vocabulary.types[token]
    if kind not in _USED:
        return f"\0{token}", least
    return vocabulary.texts[token], 0.0 if kind == TokenType.USER_DEFINED else vocabulary.scores[token]


class CharacterMap:
    """The longest prefix in the map is replaced; what is not in it stays."""

    def __init__(self, data: bytes) -> None:
        size = int.from_bytes(data[:4], "little") if data else 0
        if size % 4 or (len(data) < 4 + size and data):
            raise ValueError("the map of characters is cut off")
        self._nodes = array("I", data[4 : 4 + size])
        self._texts = data[4 + size :]

    def apply(self, text: bytes) -> str:
        if not self._nodes:
            return text.decode()
        parts, start = [], 0
        while start < len(text):
            length, replacement = self._longest(text, start)
            if not length:
                length = _character(text[start])
                replacement = text[start : start + length]
            parts.append(replacement)
            start += length
        return b"".join(parts).decode("utf-8", "replace")

    def _longest(self, text: bytes, start: int) -> tuple[int, bytes]:
        """Length of the longest prefix of text[start:] in the map, 0 without one, and what replaces it."""
        nodes, length, offset = self._nodes, 0, 0
        place = _base(nodes[0])
        for i in range(start, len(text)):
            place ^= text[i]
            if not text[i] or place >= len(nodes) or nodes[place] & 0x800000FF != text[i]:
                break
            node = nodes[place]
            place ^= _base(node)
            if node >> 8 & 1 and place < len(nodes):
                length, offset = i - start + 1, nodes[place] & 0x7FFFFFFF
        return length, self._texts[offset : self._texts.find(b"\0", offset)] if length else b""


def _base(node: int) -> int:
    """A double-array unit holds its offset in 22 bits, in steps of 256 where bit 9 is set."""
    return node >> 10 << ((node & 1 << 9) >> 6)


def _character(first: int) -> int:
    """Bytes of the UTF-8 character that begins with `first`."""
    return 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
