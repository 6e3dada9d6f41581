"""Numbers in answers and passages: which are the same, which an answer made up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from rag.sentences import Span

NUMBER = re.compile(r"\d+(?:[.,:/x×-]\d+)*")
WITH_UNIT = re.compile(r"(?<![\w.])(\d+(?:[.,]\d+)*)[ \t\n]+([^\W\d_]+)")
_SPELLED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SPELLED = {word: str(number) for number, word in enumerate(_SPELLED, 2)}
SPELLED_WORD = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b", re.IGNORECASE)
# Two digits or more: single ones count the items and parts of an answer. Not inside of words.
SAID = re.compile(r"(?<![\w.])\d+(?:[.,:]?\d)+(?![\w])")
COUNTS_ITEM = re.compile(r"(?:^|\n)[ \t]*\Z")  # "12. Fields" at the start of a line
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


class KnownNumbers:
    """All numbers of some texts, as digits alone: "1,024" and "1024" are one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = " ".join(plain(text) for text in texts)

    def invented(self, text: str, start: int, end: int) -> Iterator[Span]:
        """Spans of the numbers between `start` and `end` that stand in none of the texts."""
        for match in SAID.finditer(text, start, end):
            counts = COUNTS_ITEM.search(text, 0, match.start()) and text[match.end() : match.end() + 1] in tuple(".)")
            if not counts and not self._has(plain(match[0])):
                yield match.span()

    def _has(self, number: str) -> bool:
        """A decimal may have more digits there: it was cut."""
        end = "" if "." in number else r"(?!\d)"
        return re.search(rf"(?<!\d){re.escape(number)}{end}", self._text) is not None


def numbers(text: str, start: int = 0, end: int | None = None) -> set[str]:
    """As they are written, but for separators of thousands."""
    return set(map(plain, NUMBER.findall(text, start, len(text) if end is None else end)))


def numbers_told(text: str) -> set[str]:
    """The same with those that are spelled: "two" tells 2."""
    return numbers(text) | {SPELLED[match[0].lower()] for match in SPELLED_WORD.finditer(text)}


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
