"""SentencePiece BPE as in Llama 2, Mistral and Gemma vocabularies: the best-scored pair of neighbours merges first.

Spaces are written U+2581. Characters that are no token become byte tokens <0x00> to <0xFF>. Formulas: SentencePiece
(Kudo and Richardson 2018), BPE model; ties go to the leftmost pair.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence

from engine.tokenizer.vocabulary import TokenType, Vocabulary

SPACE = "\u2581"
_MAX_KEPT = 1 << 16  # words whose ids are kept; a document repeats most of its words
_MAX_KEPT_LENGTH = 64
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


class SentencePieceEncoder:
    """Text to ids, without special tokens. Safe to use from several threads."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids = vocabulary.ids
        self._scores = vocabulary.scores
        self._prefix = True if vocabulary.add_space_prefix is None else vocabulary.add_space_prefix
        self._bytes = [_byte_id(vocabulary, byte) for byte in range(256)]
        self._border = _word_border(vocabulary)
        self._kept: dict[str, list[int]] = {}

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """`continues`: other text stands before it, so that no space is added at the start."""
        spaced = " " + text if self._prefix and not continues else text
        ids: list[int] = []
        for word in self._border.split(spaced.replace(" ", SPACE)):
            ids.extend(self._word(word))
        return ids

    def id_of(self, text: str) -> int | None:
        return self._ids.get(text)

    def _word(self, word: str) -> list[int]:
        kept = self._kept.get(word)
        if kept is not None:
            return kept
        ids = [token for symbol in _merged(word, self._ids, self._scores) for token in self._symbol(symbol)]
        if len(word) <= _MAX_KEPT_LENGTH:
            if len(self._kept) >= _MAX_KEPT:
                self._kept = {}
            self._kept[word] = ids
        return ids

    def _symbol(self, symbol: str) -> Iterator[int]:
        """Its token, else those of its bytes; bytes without a token are dropped."""
        token = self._ids.get(symbol)
        if token is not None:
            yield token
            return
        for byte in symbol.encode():
            found = self._bytes[byte]
            if found is not None:
                yield found


def piece_bytes(text: str) -> bytes:
    """The bytes of a vocabulary entry."""
    return text.replace(SPACE, " ").encode()


def byte_of(text: str) -> bytes:
    """The byte of a token like <0x0A>; empty for other texts."""
    match = _BYTE.fullmatch(text)
    return bytes([int(match[1], 16)]) if match else b""


def _byte_id(vocabulary: Vocabulary, byte: int) -> int | None:
    """The token of a byte: <0xNN>, in vocabularies without those the character itself."""
    token = vocabulary.ids.get(f"<0x{byte:02X}>")
    if token is not None and vocabulary.types[token] == TokenType.BYTE:
        return token
    return vocabulary.ids.get(chr(byte)) if byte < 0x80 else None


def _word_border(vocabulary: Vocabulary) -> re.Pattern[str]:
    """Where text may be cut before merging: before a run of spaces that no token joins to what stands before it."""
    joined = {
        text[i - 1]
        for text in vocabulary.texts
        if SPACE in text.lstrip(SPACE)
        for i in range(1, len(text))
        if text[i] == SPACE != text[i - 1]
    }
    excluded = "".join(map(re.escape, sorted(joined | {SPACE})))
    return re.compile(f"(?<=[^{excluded}])(?={SPACE})")


def _merged(word: str, ids: dict[str, int], scores: Sequence[float]) -> list[str]:
    """The symbols that are left when no two neighbours form a token."""
    symbols = list(word)
    after = [*range(1, len(symbols)), -1]
    before = list(range(-1, len(symbols) - 1))
    heap: list[tuple[float, int, int, str]] = []

    def offer(left: int, right: int) -> None:
        if left >= 0 and right >= 0:
            both = symbols[left] + symbols[right]
            token = ids.get(both)
            if token is not None:
                heapq.heappush(heap, (-scores[token], left, right, both))

    for left in range(len(symbols) - 1):
        offer(left, left + 1)
    while heap:
        _, left, right, both = heapq.heappop(heap)
        if not symbols[left] or not symbols[right] or symbols[left] + symbols[right] != both:
            continue  # one of them has merged since
        symbols[left], symbols[right] = both, ""
        after[left] = after[right]
        if after[right] >= 0:
            before[after[right]] = left
        offer(before[left], left)
        offer(left, after[left])
    return [symbol for symbol in symbols if symbol]
