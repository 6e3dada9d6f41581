"""Chapters of the outline, and the one that a reader names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag.types import Outline

CHAPTER = re.compile(
    r"\b(?P<kind>(?i:chapter|section|appendix|part))\s+(?P<name>\d+(?:\.\d+)*|[A-Z](?:\.\d+)*\b|[IVX]+\b)"
)
NUMBERED = re.compile(r"^(?:(?:chapter|section|appendix|part)\s+)?(?P<number>(?:\d+|[A-Z])(?:\.\d+)*)\b[.:)]?", re.I)
LEAST_TITLE = 6  # letters; a shorter title is a word that a question has anyway


@dataclass(frozen=True)
class Chapter:
    """An outline entry with the pages it covers, both ends included. `number`: its own ("3.1"), or counted
    among the chapters of the first level when its title has none."""

    title: str
    level: int
    number: str
    first: int
    last: int

    @property
    def pages(self) -> range:
        return range(self.first, self.last + 1)


def chapters(outline: Sequence[Outline], pages: int) -> list[Chapter]:
    """The outline's entries that point somewhere, in their order.

    A chapter of the first level ends before the page the next one begins on, a section on it: chapters begin new
    pages, sections mostly do not.
    """
    placed = [(entry, entry.page_index) for entry in outline if entry.page_index is not None]
    numbers = _numbers([entry for entry, _ in placed])
    found: list[Chapter] = []
    for position, (entry, first) in enumerate(placed):
        after = (page for later, page in placed[position + 1 :] if later.level <= entry.level and page >= first)
        following = next(after, pages)
        last = following - 1 if entry.level == 0 or following == pages else following
        found.append(Chapter(entry.title, entry.level, numbers[position], first, max(first, last)))
    return found


def _numbers(entries: Iterable[Outline]) -> list[str]:
    """Own numbers; entries of the first level are counted where none of them has a number."""
    entries = list(entries)
    own = [_own_number(entry.title) for entry in entries]
    if any(number and entry.level == 0 for number, entry in zip(own, entries, strict=True)):
        return own
    count = 0
    for position, entry in enumerate(entries):
        if entry.level == 0:
            count += 1
            own[position] = str(count)
    return own


def _own_number(title: str) -> str:
    match = NUMBERED.match(title)
    return match["number"].upper() if match and (match["number"][0].isdigit() or len(title) > len(match[0])) else ""


def named_chapter(question: str, chapters: Sequence[Chapter]) -> Chapter | None:
    """The chapter a question names by its number ("chapter 2", "section 3.1") or by its title; the title that is
    longest wins."""
    match = CHAPTER.search(question)
    if match:
        wanted = _arabic(match["name"]) if match["kind"].casefold() in ("chapter", "part") else match["name"]
        for chapter in chapters:
            if chapter.number in (match["name"].upper(), wanted):
                return chapter
    asked = _letters(question)
    titled = [c for c in chapters if len(_title(c)) >= LEAST_TITLE and f" {_title(c)} " in f" {asked} "]
    return max(titled, key=lambda chapter: len(_title(chapter)), default=None) if _speaks_of_part(question) else None


def _speaks_of_part(question: str) -> bool:
    return re.search(r"\b(chapter|section|part|appendix)\b", question, re.IGNORECASE) is not None


def _title(chapter: Chapter) -> str:
    return _letters(NUMBERED.sub("", chapter.title, count=1) if chapter.number else chapter.title)


def _letters(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _arabic(name: str) -> str:
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    if not name or any(c not in values for c in name.upper()):
        return name
    digits = [values[c] for c in name.upper()]
    return str(sum(-d if d < max(digits[n + 1 :], default=0) else d for n, d in enumerate(digits)))
