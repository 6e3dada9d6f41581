"""Scores of pages by their words, in the index that fits each document's language."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rag.expressions import part_expression, telling_terms
from rag.index.database import Database
from rag.types import Document, DocumentId

PageKey = tuple[int, int]  # document, page
Scores = Mapping[PageKey, float]

LAST_PAGE = 1 << 30  # no document has it
FOUND_ROWS = 1000  # taken from a full-text index


@dataclass(frozen=True)
class Searched:
    """The documents that are searched, and what pages of them. `pages`: ascending; none for a document that is searched
    whole."""

    documents: tuple[Document, ...]
    pages: Mapping[DocumentId, Sequence[int]]

    @property
    def condition(self) -> str:
        return IN_DOCUMENTS + (IN_PAGES if self.pages else "")

    def values(self) -> tuple[str, ...]:
        """For the parameters of `condition`."""
        outside = [(int(d), first, last) for d, pages in self.pages.items() for first, last in _outside(pages)]
        chosen = json.dumps([int(document.id) for document in self.documents])
        return (chosen, json.dumps(outside)) if self.pages else (chosen,)

    def has(self, key: PageKey) -> bool:
        pages = self.pages.get(DocumentId(key[0]))
        return pages is None or key[1] in pages

    def by_language(self) -> dict[str, Searched]:
        """The same documents, parted by the index their words are in."""
        parts: dict[str, tuple[Document, ...]] = {}
        for document in self.documents:
            parts[document.language] = (*parts.get(document.language, ()), document)
        return {language: replace(self, documents=documents) for language, documents in parts.items()}


IN_DOCUMENTS = " document_id IN (SELECT value FROM json_each(?))"
IN_PAGES = (
    " AND NOT EXISTS (SELECT 1 FROM json_each(?) AS part"
    " WHERE json_extract(part.value, '$[0]') = document_id AND page_index BETWEEN"
    " json_extract(part.value, '$[1]') AND json_extract(part.value, '$[2]'))"
)


def _outside(pages: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of the other pages, both ends included."""
    for before, after in pairwise((-1, *pages, LAST_PAGE)):
        if after - before > 1:
            yield before + 1, after - 1


@dataclass(frozen=True)
class WordScores:
    """BM25 of pages, of each page's best window, of single windows (by row id), of pages in the trigram index.
    `terms`: how many of the query's words a page has, if it has two."""

    pages: Scores
    terms: Scores
    best_windows: Scores
    windows: Mapping[int, float]
    parts: Scores


def word_scores(db: Database, query: str, searched: Searched, heading: float) -> WordScores:
    """Scores of everything the query's words are in. `heading`: weight of the headings above a window."""
    pages: dict[PageKey, float] = {}
    terms: dict[PageKey, float] = {}
    best: dict[PageKey, float] = {}
    by_window: dict[int, float] = {}
    for language, part in searched.by_language().items():
        telling = telling_terms(query, language)
        expression = " OR ".join(telling)
        kind = "stems" if language else "words"
        found = _pages(db, f"page_{kind}", expression, part)
        pages |= dict(found.values())
        terms |= _terms(db, f"page_{kind}", telling, {page: key for page, (key, _) in found.items()})
        for window, key, score in _windows(db, f"window_{kind}", expression, part, heading):
            best.setdefault(key, score)
            by_window[window] = score
    parts = dict(_pages(db, "page_parts", part_expression(query), searched).values())
    return WordScores(pages, terms, best, by_window, parts)


def _pages(db: Database, table: str, expression: str, searched: Searched) -> dict[int, tuple[PageKey, float]]:
    """The best ones, by row id."""
    if not expression:
        return {}
    rows = db.tuples(
        f"SELECT pages.id, document_id, page_index, -bm25({table}) AS score FROM {table}"
        f" JOIN pages ON pages.id = {table}.rowid"
        f" WHERE {table} MATCH ? AND {searched.condition} ORDER BY score DESC LIMIT ?",
        (expression, *searched.values(), FOUND_ROWS),
    )
    return {identifier: ((document, page), score) for identifier, document, page, score in rows}


def _terms(db: Database, table: str, terms: Sequence[str], pages: Mapping[int, PageKey]) -> dict[PageKey, float]:
    """Of the pages (by row id) with at least two of the terms, how many they have.

    The plus and CROSS keep SQLite from asking the index for every page and term by itself, which takes a hundred
    times as long.
    """
    rows = db.tuples(
        f"SELECT page.rowid, count(*) AS number FROM json_each(?) AS term CROSS JOIN {table} AS page"
        f" ON page.{table} MATCH term.value WHERE +page.rowid IN (SELECT value FROM json_each(?))"
        " GROUP BY page.rowid HAVING number > 1",
        (json.dumps(terms), json.dumps(list(pages))),
    )
    return {pages[identifier]: float(number) for identifier, number in rows}


def _windows(
    db: Database, table: str, expression: str, searched: Searched, heading: float
) -> list[tuple[int, PageKey, float]]:
    """(window id, page, score), best first."""
    if not expression:
        return []
    rows = db.tuples(
        f"SELECT windows.id, document_id, page_index, -bm25({table}, ?, 1.0) AS score"
        f" FROM {table} JOIN windows ON windows.id = {table}.rowid WHERE {table} MATCH ?"
        f" AND {searched.condition} ORDER BY score DESC LIMIT ?",
        (heading, expression, *searched.values(), FOUND_ROWS),
    )
    return [(window, (document, page), score) for window, document, page, score in rows]
