"""Chapters of the outline, and the one that a reader names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag.late_patterns import late
from rag.spelled import WORDS, value
from rag.types import Outline

_CHAPTERS = ("chapter", "kapitel", "chapitre", "capítulo")
_SECTIONS = ("section", "abschnitt", "sección")
_APPENDICES = ("appendix", "anhang", "annexe", "anexo", "apéndice")
_PARTS = ("part", "teil", "partie", "parte")
_KINDS = "|".join((*_CHAPTERS, *_SECTIONS, *_APPENDICES, *_PARTS))
CHAPTER = late(rf"\b(?P<kind>(?i:{_KINDS}))\s+(?P<name>\d+(?:\.\d+)*|[A-Z](?:\.\d+)*\b|[IVX]+\b)")
NUMBERED = late(  # "3.1 Tools", "Chapter 3: Tools", "A. Tables"; not "64-bit systems"
    rf"^(?:(?P<kind>{_KINDS})\s+)?(?P<number>(?:\d+|[A-Z])(?:\.\d+)*)"
    r"(?:[.:)]|(?=[\s,–—]|-\s|$))",
    re.IGNORECASE,
)
_WRITTEN = "|".join(sorted(WORDS, key=len, reverse=True))
SPELLED = late(rf"\b(?P<kind>{_KINDS})\s+(?P<name>\w+(?:-\w+)?)", re.IGNORECASE)
BEFORE_TITLE = late(rf"(?:(?:\d+|[ivxlc]+|[a-z]|{_KINDS}|{_WRITTEN}) ){{0,6}}")  # at a page's top
LEAST_TITLE = 6  # letters; a shorter title is a word that a question has anyway


@dataclass(frozen=True)
class Chapter:
    """An outline entry with the pages it covers, both ends included. `number`: its own ("3.1"), or counted
    among the chapters of the first level where they have no numbering."""

    title: str
    level: int
    number: str
    first: int
    last: int

    @property
    def pages(self) -> range:
        return range(self.first, self.last + 1)


def chapters(outline: Sequence[Outline], pages: int, texts: Mapping[int, str] | None = None) -> list[Chapter]:
    """The outline's entries that point somewhere, in their order.

    An entry ends on the page the next one of its level begins on, or before it where that one's heading stands at the
    page's top.

    Args:
        pages: how many the document has.
        texts: of pages that entries begin on; where one is missing the heading may stand in its middle.
    """
    placed = [(entry, entry.page_index) for entry in outline if entry.page_index is not None]
    numbers = _numbers([entry for entry, _ in placed])
    found: list[Chapter] = []
    for position, (entry, first) in enumerate(placed):
        after = (one for one in placed[position + 1 :] if one[0].level <= entry.level and one[1] >= first)
        following, page = next(after, (None, pages))
        ends_before = following is None or _begins_page(following.title, (texts or {}).get(page, ""))
        found.append(
            Chapter(entry.title, entry.level, numbers[position], first, max(first, page - 1 if ends_before else page))
        )
    return found


def _begins_page(title: str, text: str) -> bool:
    """Nothing but numbers stands before the heading. A title that is there again may be the page's header."""
    wanted, words = _letters(NUMBERED.sub("", title, count=1)), _letters(text)
    if not wanted or f" {words} ".count(f" {wanted} ") != 1:
        return False
    return BEFORE_TITLE.fullmatch(f"{words} "[: f" {words} ".index(f" {wanted} ")]) is not None


def _numbers(entries: Sequence[Outline]) -> list[str]:
    """Own numbers; entries of the first level are counted where theirs are no numbering, appendices apart."""
    own = [_own_number(entry.title) for entry in entries]
    top = [(entry.title, number) for entry, number in zip(entries, own, strict=True) if entry.level == 0 and number]
    if _is_numbering(top):
        return own
    count = 0
    for position, entry in enumerate(entries):
        if entry.level == 0 and not _is_appendix(entry.title):
            count += 1
            own[position] = str(count)
    return own


def _is_numbering(numbered: Sequence[tuple[str, str]]) -> bool:
    """Titles and what could be their numbers: one says "chapter", or they begin at 1 or A, or follow one another.
    "64 bits explained" and "A Tour of the Program" number nothing by themselves."""
    if any((match := NUMBERED.match(title)) and match["kind"] and not _is_appendix(title) for title, _ in numbered):
        return True
    first = {number.split(".")[0] for title, number in numbered if not _is_appendix(title)}
    counted = {int(number) for number in first if number.isdecimal()}
    return bool(counted & {0, 1}) or any(number + 1 in counted for number in counted) or {"A", "B"} <= first


def _is_appendix(title: str) -> bool:
    match = NUMBERED.match(title)
    return match is not None and (match["kind"] or "").casefold() in _APPENDICES


def _own_number(title: str) -> str:
    """A letter is one where it stands apart: "A. Tables", "A Tables", "A.1 tables", but not "A tour"."""
    match = NUMBERED.match(title)
    if match is None:
        return ""
    rest = title[match.end() :].strip()
    apart = bool(rest) and title[0].isupper() and (len(match[0]) > 1 or rest[0].isupper() or rest[0].isdigit())
    return match["number"].upper() if match["kind"] or match["number"][0].isdecimal() or apart else ""


def may_name_chapter(question: str) -> bool:
    """Whether looking for it, which takes the outline, is worth it."""
    return re.search(_KINDS, question, re.IGNORECASE) is not None


def named_chapter(question: str, chapters: Sequence[Chapter]) -> Chapter | None:
    """The chapter a question names by its number ("chapter 2", "section 3.1") or by its title; the title that is
    longest wins."""
    match = CHAPTER.search(SPELLED.sub(_in_digits, question))
    if match:
        wanted = _arabic(match["name"]) if match["kind"].casefold() in (*_CHAPTERS, *_PARTS) else match["name"]
        for chapter in chapters:
            if chapter.number in (match["name"].upper(), wanted):
                return chapter
    asked = _letters(question)
    titled = [c for c in chapters if len(_title(c)) >= LEAST_TITLE and f" {_title(c)} " in f" {asked} "]
    return max(titled, key=lambda chapter: len(_title(chapter)), default=None) if _speaks_of_part(question) else None


def _in_digits(match: re.Match[str]) -> str:
    """ "Chapter three" as "Chapter 3"."""
    number = value(match["name"])
    return match[0] if number is None else f"{match['kind']} {number}"


def _speaks_of_part(question: str) -> bool:
    return re.search(rf"\b(?:{_KINDS})\b", question, re.IGNORECASE) is not None


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
