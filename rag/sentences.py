"""Cutting a text into sentences and sentence-like lines, and counting its words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag.late_patterns import late

Span = tuple[int, int]  # start, end

CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
# Hebrew points and accents, Arabic vowels and the stroke that lengthens a word: written or not, the word is the same.
MARKS = (
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4"
    "\u06e7\u06e8\u06ea-\u06ed"
)
MARK = late(f"[{MARKS}]")
RIGHT_TO_LEFT = late("[\u0590-\u08ff\ufb1d-\ufefc]")  # Hebrew, Arabic and their kin
_LETTERS = rf"[^\W{CJK}]+(?:[{MARKS}]+[^\W{CJK}]*)*"
WORD = late(rf"[{CJK}]|{_LETTERS}(?:['’]{_LETTERS})*")
ASCII_WORD = late(r"\w+(?:'\w+)*", re.ASCII)  # the same in ASCII, twice as fast
IDEOGRAPH = late(rf"[{CJK}]")
FIRST_IDEOGRAPH = CJK[0]
END = late(r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+[」』”）]*|[؟۔]+[\"'”’»)\]]*(?=\s|$)|\n[ \t]*\n")
ABBREVIATION = late(
    r"(?:\b(?i:e\.g|i\.e|cf|vs|etc|al|figs?|eqs?|secs?|ch|vol|nos?|pp?|dr|mr|mrs|ms|prof|st|resp|approx|ca)"
    r"|\b[A-Z])\.$"
)
CONTINUES = late(r"\s+[a-zß-ÿ,;)]")
STARTS_ANEW = late(r"\s*(?:[A-Z0-9•\-–—*∙◦§(\[\"“‘]|[A-Z_]+\()")
SHORT_LINE = 0.7  # of the longest line: a line that ends before it ends a paragraph, heading or item
LONGEST_WORDS = 80


def count_words(text: str) -> float:
    """Words; two ideographs or syllable blocks count as one."""
    if text.isascii():
        return len(ASCII_WORD.findall(text))
    ideographs = len(IDEOGRAPH.findall(text))
    return len(WORD.findall(text)) - ideographs / 2


def sentences(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Spans of the sentences between `start` and `end`, without white space around them, none over 80 words."""
    end = len(text) if end is None else end
    width = max((len(line) for line in text[start:end].splitlines()), default=0)
    spans: list[Span] = []
    for first, last in _pieces(text, start, end, width):
        spans.extend(_bounded(text, *_trimmed(text, first, last)))
    return [span for span in spans if span[0] < span[1]]


def _pieces(text: str, start: int, end: int, width: int) -> Iterator[Span]:
    first = start
    for stop in _stops(text, start, end, width):
        if stop > first:
            yield first, stop
            first = stop
    yield first, end


def _stops(text: str, start: int, end: int, width: int) -> Iterator[int]:
    marks = {match.end() for match in END.finditer(text, start, end) if _ends_sentence(text, match)}
    position = start
    for line in text[start:end].splitlines(keepends=True):
        position += len(line)
        if len(line.rstrip()) < SHORT_LINE * width and STARTS_ANEW.match(text, position, end):
            marks.add(position)
    return iter(sorted(marks))


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    if match[0].startswith("\n") or match[0][0] in "。！？":
        return True
    before = text[max(0, match.start() - 12) : match.start() + 1]
    return not ABBREVIATION.search(before) and not CONTINUES.match(text, match.end())


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))


def _bounded(text: str, start: int, end: int) -> Iterator[Span]:
    """The span cut into parts of at most LONGEST_WORDS words."""
    if end - start < LONGEST_WORDS:  # a word has a letter at least
        yield _trimmed(text, start, end)
        return
    words = 0.0
    first = start
    for match in WORD.finditer(text, start, end):
        words += 0.5 if match[0] >= FIRST_IDEOGRAPH and IDEOGRAPH.match(match[0]) else 1
        if words > LONGEST_WORDS:
            yield _trimmed(text, first, match.start())
            first, words = match.start(), 1
    yield _trimmed(text, first, end)
