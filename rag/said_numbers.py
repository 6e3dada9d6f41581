"""Numbers that an answer says and none of its passages has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rag.sentences import Span

# Two digits or more: single ones count the items and parts of an answer. Not inside of words.
NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]?\d)+(?![\w])")
COUNTS_ITEM = re.compile(r"(?:^|\n)[ \t]*\Z")  # "12. Fields" at the start of a line
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


class KnownNumbers:
    """All numbers of some texts, as digits alone: "1,024" and "1024" are one."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = " ".join(plain(text) for text in texts)

    def invented(self, text: str, start: int, end: int) -> Iterator[Span]:
        """Spans of the numbers between `start` and `end` that stand in none of the texts."""
        for match in NUMBER.finditer(text, start, end):
            counts = COUNTS_ITEM.search(text, 0, match.start()) and text[match.end() : match.end() + 1] in tuple(".)")
            if not counts and not self._has(plain(match[0])):
                yield match.span()

    def _has(self, number: str) -> bool:
        """A decimal may have more digits there: it was cut."""
        end = "" if "." in number else r"(?!\d)"
        return re.search(rf"(?<!\d){re.escape(number)}{end}", self._text) is not None


def plain(text: str) -> str:
    return THOUSANDS.sub("", text)
