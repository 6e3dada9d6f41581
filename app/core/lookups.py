"""What was looked up for a question, and where: frozen records, stored with the question's message.

Pages are indices from 0, ranges are PDFium character indices; page labels are what the page has printed on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

Use = Literal["new", "known", "no room"]
Why = Literal["found", "neighbour", "scope", "beginning", "opening"]


@dataclass(frozen=True)
class StoredRange:
    page_index: int
    char_start: int
    char_count: int


@dataclass(frozen=True)
class Scope:
    """A part of a conversation's documents that its questions look into.

    Attributes:
        label: in words for the reader, as "pages 10–20" or a chapter's title.
        document_id: None: all of `collection`.
        first, last: pages, both included; `last` -1: all of it. `more`: further ranges behind these.
        char_start, char_count: a selection on page `first`; no selection when the count is 0.
        collection: name of a collection whose documents are searched.
    """

    label: str
    document_id: int | None = None
    first: int = 0
    last: int = -1
    char_start: int = 0
    char_count: int = 0
    collection: str = ""
    more: tuple[tuple[int, int], ...] = ()

    @property
    def pages(self) -> Sequence[int]:
        """Ascending."""
        ranges = [range(first, last + 1) for first, last in ((self.first, self.last), *self.more)]
        return tuple(chain.from_iterable(ranges)) if self.more else ranges[0]

    @staticmethod
    def from_json(data: dict[str, Any]) -> Scope:
        return Scope(**{**data, "more": tuple((first, last) for first, last in data.get("more", ()))})

    @property
    def is_selection(self) -> bool:
        return self.char_count > 0


@dataclass(frozen=True)
class FoundPassage:
    """A passage that a look-up came to.

    Attributes:
        text: its beginning on `page_index`, as far as a panel shows it.
        score: words and vectors together; comparable within one look-up.
        words, vectors: what each gave (BM25 of the best window, cosine of the best window); 0: nothing.
        why: "found"; "neighbour" of a better one; "scope": all of the scope is placed;
            "beginning": nothing was found in the scope, it begins there; "opening": the question is about the document
            as such, which begins there.
        use: "new": placed with this question; "known": in the context already; "no room": left out.
        marker: its number in the context; 0 when it was left out.
    """

    document_id: int
    document: str
    passage_id: int
    page_index: int
    page_label: str
    ranges: tuple[StoredRange, ...]
    text: str
    score: float = 0.0
    words: float = 0.0
    vectors: float = 0.0
    why: Why = "found"
    use: Use = "no room"
    marker: int = 0

    @staticmethod
    def from_json(data: dict[str, Any]) -> FoundPassage:
        return FoundPassage(**{**data, "ranges": tuple(StoredRange(**item) for item in data["ranges"])})


@dataclass(frozen=True)
class Lookup:
    """One search for a question.

    Attributes:
        query: what was searched for; other than the question when that leaned on the one before.
        scope: where, in words; "" for all documents of the conversation.
        from_words: the scope stood in the question's own words.
        by_meaning: vectors took part; else words alone.
        passages: best first, neighbours last.
        budget: tokens that passages might take; 0: not known. `full`: it was what room the context had left.
    """

    query: str
    scope: str = ""
    from_words: bool = False
    by_meaning: bool = False
    passages: tuple[FoundPassage, ...] = ()
    budget: int = 0
    full: bool = False

    @property
    def fell_back(self) -> bool:
        """Nothing was found; the model got the beginning of where it was searched."""
        return any(found.why == "beginning" for found in self.passages)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Lookup:
        return Lookup(**{**data, "passages": tuple(FoundPassage.from_json(item) for item in data["passages"])})


@dataclass(frozen=True)
class PagesRead:
    """What of a document the model had before it, in a reader's words. `pages`: 0-based; `labels`: as printed, in
    ranges, "" where nothing was read."""

    document_id: int
    document: str
    pages: tuple[int, ...]
    labels: str

    @staticmethod
    def from_json(data: dict[str, Any]) -> PagesRead:
        return PagesRead(**{**data, "pages": tuple(data["pages"])})
