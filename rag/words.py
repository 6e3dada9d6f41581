"""Scores of pages by their words, in the index that fits each document's language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rag.expressions import match_expression, part_expression
from rag.index.database import Database
from rag.types import Document, DocumentId

PageKey = tuple[int, int]  # document, page
Scores = Mapping[PageKey, float]

FOUND_ROWS = 1000  # taken from a full-text index


@dataclass(frozen=True)
class Searched:
    """The documents that are searched, and what pages of them. `pages`: none for a document that is searched whole."""

    documents: tuple[Document, ...]
    pages: Mapping[DocumentId, range]

    @property
    def condition(self) -> str:
        return IN_DOCUMENTS + (IN_PAGES if self.pages else "")

    def values(self) -> tuple[str, ...]:
        """For the parameters of `condition`."""
        ranges = [(int(d), pages.start, pages.stop - 1) for d, pages in self.pages.items()]
        chosen = json.dumps([int(document.id) for document in self.documents])
        return (chosen, json.dumps(ranges)) if ranges else (chosen,)

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
    " WHERE json_extract(part.value, '$[0]') = document_id AND page_index NOT BETWEEN"
    " json_extract(part.value, '$[1]') AND json_extract(part.value, '$[2]'))"
)


@dataclass(frozen=True)
class WordScores:
    """BM25 of pages, of each page's best window, of single windows (by row id), of pages in the trigram index."""

    pages: Scores
    best_windows: Scores
    windows: Mapping[int, float]
    parts: Scores


def word_scores(db: Database, query: str, searched: Searched, heading: float) -> WordScores:
    """Scores of everything the query's words are in. `heading`: weight of the headings above a window."""
    pages: dict[PageKey, float] = {}
    best: dict[PageKey, float] = {}
    by_window: dict[int, float] = {}
    for language, part in searched.by_language().items():
        expression = match_expression(query, language)
        kind = "stems" if language else "words"
        pages |= _pages(db, f"page_{kind}", expression, part)
        for window, key, score in _windows(db, f"window_{kind}", expression, part, heading):
            best.setdefault(key, score)
            by_window[window] = score
    return WordScores(pages, best, by_window, _pages(db, "page_parts", part_expression(query), searched))


def _pages(db: Database, table: str, expression: str, searched: Searched) -> dict[PageKey, float]:
    if not expression:
        return {}
    rows = db.tuples(
        f"SELECT document_id, page_index, -bm25({table}) AS score FROM {table} JOIN pages ON pages.id = {table}.rowid"
        f" WHERE {table} MATCH ? AND {searched.condition} ORDER BY score DESC LIMIT ?",
        (expression, *searched.values(), FOUND_ROWS),
    )
    return {(document, page): score for document, page, score in rows}


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
