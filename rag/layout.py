"""What on a page is not its text: running headers and footers, and pages that only list where things are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

EDGE_LINES = 2  # lines at the top and bottom that may be running ones
LEAST_PAGES = 3
LEAST_SHARE = 0.3  # of the pages between the first and the last time it is seen
NUMBER = re.compile(r"\d+")
EDGE_NUMBER = re.compile(r"^\d{1,5}(?=\s)|(?<=\s)\d{1,5}$")
PAGE_NUMBER = re.compile(r"[-–—\s]*(\d{1,5}|[ivxlc]{1,8}|[a-z])[-–—\s]*", re.IGNORECASE)
LEADERS = re.compile(r"(\.\s?){4,}\s*[\divxlc]+\s*$", re.IGNORECASE)
ENDS_IN_NUMBER = re.compile(r"\D(\d{1,5})\s*$")
INDEX_ENTRY = re.compile(r",\s*\d{1,5}([-–,\s]+\d{1,5})*\s*$")
LEAST_LISTED = 8
LISTED_SHARE = 0.5
AROUND_TITLE = re.compile(r"^[\W\d]+|[\W\d]+$")
LETTERS = re.compile(r"\w+")


@dataclass
class RunningLines:
    """Forms of lines that come back at page edges, and numbers there that count the pages; fed with every page once,
    then asked per page."""

    seen: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add(self, page_index: int, text: str) -> None:
        lines = text.splitlines()
        for edge, some in (("top", lines[:EDGE_LINES]), ("bottom", lines[-EDGE_LINES:])):
            for form in {form for line in some for form in _forms(line, page_index)}:
                self.seen.setdefault((edge, form), []).append(page_index)

    def body(self, page_index: int, text: str) -> tuple[int, int]:
        """Start and end of the page's text without its running lines."""
        lines = text.splitlines(keepends=True)
        start, end = 0, len(text)
        if len(lines) <= 2 * EDGE_LINES:
            return start, end
        for line in lines[:EDGE_LINES]:
            if not self._runs("top", line, page_index):
                break
            start += len(line)
        for line in reversed(lines[-EDGE_LINES:]):
            if not self._runs("bottom", line, page_index):
                break
            end -= len(line)
        return start, end

    def _runs(self, edge: str, line: str, page_index: int) -> bool:
        if PAGE_NUMBER.fullmatch(line.strip()):
            return True
        return any(_is_often(self.seen.get((edge, form), [])) for form in _forms(line, page_index))


def _is_often(pages: Sequence[int]) -> bool:
    return len(pages) >= LEAST_PAGES and len(pages) >= LEAST_SHARE * (pages[-1] - pages[0] + 1)


def _forms(line: str, page_index: int) -> Iterator[str]:
    """The line with any numbers; and how far the number at its start or end is from the page's own."""
    yield NUMBER.sub("#", " ".join(line.split()).casefold())
    for match in EDGE_NUMBER.finditer(line.strip()):
        yield f"page {int(match[0]) - page_index:+d}"


def is_listing(text: str) -> bool:
    """True for a page of a table of contents or an index: most lines end in page numbers."""
    lines = [line.rstrip() for line in text.splitlines() if len(line.strip()) > 3]
    if len(lines) < LEAST_LISTED:
        return False
    leaders = sum(1 for line in lines if LEADERS.search(line))
    entries = sum(1 for line in lines if INDEX_ENTRY.search(line))
    return max(leaders, entries, _ascending(lines)) > 0.5 * len(lines)


def title_form(title: str) -> str:
    """Its letters, without numbers before and after: "11.2 My program" and "1. My program" are one title."""
    return " ".join(LETTERS.findall(AROUND_TITLE.sub("", title.casefold())))


def lists_titles(text: str, titles: AbstractSet[str]) -> bool:
    """True for a page that lists titles of the outline (in `title_form`) and is little else, as a list of contents in
    the middle of a document without page numbers."""
    forms = [form for line in text.splitlines() if (form := title_form(line))]
    listed = sum(form in titles for form in forms)
    return listed >= LEAST_LISTED and listed > LISTED_SHARE * len(forms)


def _ascending(lines: Iterable[str]) -> int:
    """How many lines end in a number that is not below the one before."""
    count, last = 0, 0
    for line in lines:
        match = ENDS_IN_NUMBER.search(line)
        if match and last <= int(match[1]) <= last + 50:
            count += 1
        if match:
            last = int(match[1])
    return count
