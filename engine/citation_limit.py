"""Generation that can name no passage that is not there: after "[" a number stays within those of the context.

Only digits are held back, so brackets around words stay free. A number that is being written is never cut: every
token that would lead beyond the last passage is struck out before sampling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

OPEN = re.compile(r"\[(?:\d+\s*[,;]\s*)*(\d*)$")  # a marker that is being written, and its last number so far
OPENING = re.compile(r"\[\s?(\d+)")
LEADING = re.compile(r"\s?(\d+)")
_OF_MARKERS = re.compile(rb"[\[0-9\x80-\xff]")  # other scripts have digits too
_MOST_KNOWN = 64  # markers that are being written
LONGEST_MARKER = 40  # characters of an answer's end that are looked at
Floats = npt.NDArray[np.float32]


class Vocabulary(Protocol):
    """`engine.tokenizer.Tokenizer`."""

    def token_bytes(self, token_id: int, *, special: bool = True) -> bytes: ...


@dataclass(frozen=True)
class _DigitToken:
    """A token that begins with digits (`opens` False) or has them behind a bracket of its own."""

    id: int
    digits: str
    spaced: bool
    opens: bool


class CitationLimit:
    """Token table of one model, made when it is first needed (a second for large vocabularies)."""

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        self._vocabulary = vocabulary
        self._size = size
        self._known: dict[tuple[str | None, int], npt.NDArray[np.int32]] = {}  # every token of an answer asks

    @cached_property
    def _texts(self) -> dict[int, str]:
        """Of the tokens that have a bracket, or may have digits."""
        texts = ((token, self._vocabulary.token_bytes(token)) for token in range(self._size))
        return {token: text.decode("utf-8", "ignore") for token, text in texts if _OF_MARKERS.search(text)}

    @cached_property
    def _tokens(self) -> tuple[_DigitToken, ...]:
        return tuple(self._digit_tokens())

    @cached_property
    def brackets(self) -> npt.NDArray[np.int32]:
        """Ids of the tokens behind which a marker may be open, ascending."""
        return np.array([token for token, text in self._texts.items() if "[" in text], np.int32)

    def open(self, written: str) -> bool:
        """Whether a marker is being written; if not, what is struck stays the same up to the next bracket."""
        return OPEN.search(written[-LONGEST_MARKER:]) is not None

    def _digit_tokens(self) -> Iterator[_DigitToken]:
        for token, text in self._texts.items():
            opening, leading = OPENING.search(text), LEADING.match(text)
            if opening:
                yield _DigitToken(token, opening[1], False, opens=True)
            elif leading:
                yield _DigitToken(token, leading[1], text[0].isspace(), opens=False)

    def struck(self, written: str, count: int) -> npt.NDArray[np.int32]:
        """Ids of tokens that may not follow `written` when the context has passages 1 to `count`."""
        found = OPEN.search(written[-LONGEST_MARKER:])
        case = found[1] if found else None, count
        if case not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[case] = np.array([*self._find(*case)], np.int32)
        return self._known[case]

    def _find(self, begun: str | None, count: int) -> Iterator[int]:
        """`begun`: digits of the number that is being written, None outside of markers."""
        for token in self._tokens:
            if token.opens:
                allowed = _leads_to_one(token.digits, count)
            elif begun is None:
                continue
            else:
                allowed = _leads_to_one(token.digits if token.spaced else begun + token.digits, count)
            if not allowed:
                yield token.id

    def limited(self, logits: Floats, written: str, count: int) -> Floats:
        """Logits [vocabulary] without what would name a passage that is not there; the argument stays as it is."""
        wrong = self.struck(written, count)
        if not len(wrong):
            return logits
        scores = logits.copy()
        scores[wrong] = -np.inf
        return scores


def _leads_to_one(digits: str, count: int) -> bool:
    """Some number from 1 to `count` begins with these digits. They are one themselves then: prefixes are smaller."""
    return digits[0] != "0" and 1 <= int(digits) <= count
