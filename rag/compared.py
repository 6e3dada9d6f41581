"""Texts as they are compared: words, stems, sentences, figures."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from rag.figures import numbers_told
from rag.sentences import IDEOGRAPH, MARK, WORD, Span, sentences
from rag.stop_words import STOP_WORDS

SUFFIX = re.compile(r"(?:ations?|ings?|edly|ed|ies|es|s|ly|e|y)$")


@dataclass(frozen=True)
class Words:
    """The words of a text: compared form, span, and (None for stop words) stem."""

    forms: tuple[str, ...]
    spans: tuple[Span, ...]
    stems: tuple[str | None, ...]

    @staticmethod
    def of(text: str, start: int = 0) -> Words:
        matches = list(WORD.finditer(text, start))
        forms = tuple(_folded(m[0]) for m in matches)
        return Words(forms, tuple(m.span() for m in matches), tuple(stem(form) for form in forms))


def _folded(word: str) -> str:
    """Without the vowels of Hebrew and Arabic, which a quotation may leave out."""
    folded = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    return folded if folded.isascii() else MARK.sub("", folded)


def stem(form: str) -> str | None:
    """A rough stem; None for a stop word."""
    if form in STOP_WORDS or (len(form) == 1 and not form.isdigit() and not IDEOGRAPH.match(form)):
        return None
    return form if len(form) < 5 or form[0].isdigit() else SUFFIX.sub("", form)


class Sentence(NamedTuple):
    span: Span
    stems: frozenset[str]


@dataclass(frozen=True)
class Source:
    text: str

    @cached_property
    def words(self) -> Words:
        return Words.of(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(s for s in self.words.stems if s)

    @cached_property
    def sentences(self) -> list[Sentence]:
        return [Sentence(span, content(self.text[slice(*span)])) for span in sentences(self.text)]

    def numbers(self, span: Span) -> set[str]:
        return numbers_told(self.text[slice(*span)])

    def numbers_near(self, span: Span) -> set[str]:
        """Numbers of the sentences that a span touches: "kept for 90 days" is no quote of "kept for 30 days"."""
        return self.numbers(self.touched(span))

    def text_with(self, span: Span, count: int) -> str:
        """What a span covers, behind `count` sentences before it."""
        before = [s.span[0] for s in self.sentences if s.span[0] < span[0]][-count:]
        return self.text[min([span[0], *before]) : span[1]]

    def touched(self, span: Span) -> Span:
        """The sentences that a span touches, together."""
        touched = [s.span for s in self.sentences if s.span[0] < span[1] and span[0] < s.span[1]]
        return (min(span[0], touched[0][0]), max(span[1], touched[-1][1])) if touched else span


def content(text: str) -> frozenset[str]:
    return frozenset(s for s in Words.of(text).stems if s)
