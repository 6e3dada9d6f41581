"""Numbers in answers and passages: which are the same, which an answer made up."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache

from rag.late_patterns import late
from rag.readings import NO_SPACE, date_parts, readings, scaled, shortest, told_readings
from rag.sentences import Span
from rag.spelled import spelled

NUMBER = late(r"\d+(?:[.,:/x×-]\d+)*")
# "44 kHz" and "44kHz", but not "2nd", "90s", "4x" and "80x24".
WITH_UNIT = late(
    r"(?<![\w.])(\d+(?:[.,]\d+)*)(?:[ \t\n\u00a0\u2009\u202f]+|(?!(?:st|nd|rd|th|s|x)\b))([^\W\d_]+)(?!\w)",
    re.IGNORECASE,
)
# Two digits or more: single ones count the items and parts of an answer. Not inside of words.
SAID = late(r"(?<![\w.])(?:\d{1,3}(?:[ \u00a0\u2009\u202f]\d{3})+|\d+(?:[.,:'’]?\d)+)(?![\w])")
UNIT = late(r"\s*([^\W\d_]{1,4}|[%€$£¥°])")
KEPT_TEXTS = 256
COUNTS_ITEM = late(r"(?:^|\n)[ \t]*\Z")  # "12. Fields" at the start of a line
THOUSANDS = late(r"(?<=\d),(?=\d{3}(?!\d))")


class KnownNumbers:
    """All numbers of some texts, in every way they can be read: "1,024" is 1024 and 1.024, "twenty-four" is 24."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = tuple(texts)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset().union(*map(_told, self._texts))

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._known)

    def invented(self, text: str, start: int, end: int) -> Iterator[Span]:
        """Spans of the numbers between `start` and `end` that stand in none of the texts."""
        for match in SAID.finditer(text, start, end):
            counts = COUNTS_ITEM.search(text, 0, match.start()) and text[match.end() : match.end() + 1] in tuple(".)")
            if not counts:
                yield from self._unknown(text, match)

    def _unknown(self, text: str, said: re.Match[str]) -> Iterator[Span]:
        """The number, where it is none of ours; of one with spaces the parts that are none, it may be several."""
        if self._has(said[0], text[said.end() :]) or self._has_single(text, *said.span()):
            return
        parts = [(said.start() + part.start(), said.start() + part.end()) for part in NO_SPACE.finditer(said[0])]
        unknown = [part for part in parts if not self._has(text[slice(*part)], text[part[1] :])]
        yield from [said.span()] if len(unknown) == len(parts) else unknown

    def _has(self, number: str, behind: str) -> bool:
        if any(map(self._stands, (*readings(number), *scaled(number, behind)))):
            return True
        parts = date_parts(number)
        return bool(parts) and self._known.issuperset(parts)

    def _has_single(self, text: str, start: int, end: int) -> bool:
        """Of "5.00 euros" only "5 euros" tells: a single digit stands in any text."""
        for short in (shortest(reading) for reading in readings(text[start:end])):
            unit, sign = UNIT.match(text, end), text[start - 1 : start]
            parts = [rf"{short}\s*{re.escape(unit[1])}"] if unit else []
            parts += [rf"{re.escape(sign)}{short}(?![\d.,]*\d)"] if sign in tuple("$€£¥") else []
            if len(short) == 1 and any(
                re.search(rf"(?<![\d.,]){part}", t, re.I) for part in parts for t in self._texts
            ):
                return True
        return False

    def _stands(self, reading: str) -> bool:
        """A decimal may have more digits there: it was cut."""
        short = shortest(reading)
        if reading in self._known or (len(short) > 1 and short in self._known):
            return True
        place = bisect_left(self._sorted, reading)
        return "." in reading and place < len(self._sorted) and self._sorted[place].startswith(reading)


@lru_cache(maxsize=KEPT_TEXTS)
def _told(text: str) -> frozenset[str]:
    """Passages come again and again: with every sentence of a survey's notes."""
    known = set(told_readings(text))
    return frozenset(known | set(map(shortest, known)))


def numbers(text: str, start: int = 0, end: int | None = None) -> set[str]:
    """As they are written, but for separators of thousands."""
    return set(map(plain, NUMBER.findall(text, start, len(text) if end is None else end)))


def numbers_told(text: str) -> set[str]:
    """The same with those that are spelled: "two" tells 2."""
    return numbers(text) | set(spelled(text))


def other_unit(claim: str, text: str, stem: Callable[[str], str | None]) -> bool:
    """The claim counts in what the text does not speak of, where the text counts in something: 0.5 cm for 0.5 bp.

    Args:
        stem: of a folded word; None for words that are no unit.
    """
    ours, theirs = _units(claim, stem), _units(text, stem)
    words = {stem(word.casefold()) for word in re.findall(r"[^\W\d_]+", text)}
    return any(number in theirs and not units & (theirs[number] | words) for number, units in ours.items())


def _units(text: str, stem: Callable[[str], str | None]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for number, word in WITH_UNIT.findall(text):
        if unit := stem(word.casefold()):
            found.setdefault(plain(number), set()).add(unit)
    return found


def plain(text: str) -> str:
    return THOUSANDS.sub("", text)
