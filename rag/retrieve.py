"""Finding the passages that answer a question: words and vectors, standardised and added."""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from rag.expressions import match_expression, part_expression
from rag.index import records
from rag.index.database import Database
from rag.index.vectors import DocumentScores, VectorFiles
from rag.protocols import Embedder
from rag.types import Document, DocumentId, Hit

PageKey = tuple[int, int]  # document, page
Scores = Mapping[PageKey, float]

POOL = 100  # pages whose scores give mean and deviation of a method
FOUND_ROWS = 1000  # taken from a full-text index
NEAREST_PAGES = 200
LOWEST = -3.0  # no method may throw a page further back than this
LISTING_PENALTY = 4.0


@dataclass(frozen=True)
class Weights:
    """Parts of the sum: words and vectors weigh about the same, each at two sizes of text.

    Chosen on two sets of questions together (24 over 3 PDFs, 66 over 4 others). Recall by page @1 / @5 / @10 with
    vectors of 0.5 to 0.7 moves two questions at most; words of windows above those of pages cost both sets. A part of
    the better neighbouring page's score was never worse on four sets: pages about one thing stand together.
    """

    pages: float = 0.6
    windows: float = 0.4
    window_vectors: float = 0.6
    passage_vectors: float = 0.6
    parts: float = 1.0
    heading: float = 1.0
    neighbour: float = 0.1


@dataclass(frozen=True)
class Source:
    """What is searched, and how. Without an embedder words alone count."""

    db: Database
    vectors: VectorFiles
    embedder: Embedder | None
    weights: Weights = Weights()


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


@dataclass(frozen=True)
class VectorScores:
    """Cosines per page, and per document those of all its windows."""

    best_windows: Scores
    best_passages: Scores
    documents: Mapping[int, DocumentScores]


def search(
    source: Source,
    query: str,
    documents: Sequence[Document],
    top: int,
    pages: Mapping[DocumentId, range] | None = None,
) -> list[Hit]:
    """Hits over the given documents, one per page, best first; their page labels are left empty.

    Args:
        pages: of a document, when not all of them are searched.
    """
    if not documents or not query.strip() or top < 1:
        return []
    searched = Searched(tuple(documents), pages or {})
    words = word_scores(source, query, searched)
    vectors = vector_scores(source, query, searched)
    names = {document.id: document.name for document in documents}
    hits: list[Hit] = []
    for key, score in rank(source, words, vectors, searched):
        hit = _hit(source.db, names, key, score, words, vectors)
        if hit is not None:
            hits.append(hit)
        if len(hits) == top:
            break
    return hits


def word_scores(source: Source, query: str, searched: Searched) -> WordScores:
    expression, parts = match_expression(query), part_expression(query)
    pages = _pages(source.db, "page_words", expression, searched)
    windows = _windows(source.db, expression, searched, source.weights.heading)
    best: dict[PageKey, float] = {}
    for _, key, score in windows:
        best.setdefault(key, score)
    by_window = {window: score for window, _, score in windows}
    return WordScores(pages, best, by_window, _pages(source.db, "page_parts", parts, searched))


def _pages(db: Database, table: str, expression: str, searched: Searched) -> Scores:
    if not expression:
        return {}
    rows = db.tuples(
        f"SELECT document_id, page_index, -bm25({table}) AS score FROM {table} JOIN pages ON pages.id = {table}.rowid"
        f" WHERE {table} MATCH ? AND {searched.condition} ORDER BY score DESC LIMIT ?",
        (expression, *searched.values(), FOUND_ROWS),
    )
    return {(document, page): score for document, page, score in rows}


def _windows(db: Database, expression: str, searched: Searched, heading: float) -> list[tuple[int, PageKey, float]]:
    """(window id, page, score), best first."""
    if not expression:
        return []
    rows = db.tuples(
        "SELECT windows.id, document_id, page_index, -bm25(window_words, ?, 1.0) AS score"
        " FROM window_words JOIN windows ON windows.id = window_words.rowid WHERE window_words MATCH ?"
        f" AND {searched.condition} ORDER BY score DESC LIMIT ?",
        (heading, expression, *searched.values(), FOUND_ROWS),
    )
    return [(window, (document, page), score) for window, document, page, score in rows]


def vector_scores(source: Source, query: str, searched: Searched) -> VectorScores:
    if source.embedder is None:
        return VectorScores({}, {}, {})
    vector = source.embedder.embed([query])[0]
    found: dict[int, DocumentScores] = {}
    for document in searched.documents:
        scores = source.vectors.scores(document.id, document.sha256, source.embedder.name, vector)
        if scores is not None:
            found[document.id] = scores
    windows = {(d, page): cosine for d, scores in found.items() for page, cosine in scores.best_windows().items()}
    passages = {(d, page): cosine for d, scores in found.items() for page, cosine in scores.best_passages().items()}
    if searched.pages:
        windows = {key: cosine for key, cosine in windows.items() if searched.has(key)}
        passages = {key: cosine for key, cosine in passages.items() if searched.has(key)}
    return VectorScores(windows, passages, found)


def standardised(scores: Scores, pages: set[PageKey]) -> dict[PageKey, float]:
    """z-scores over the POOL best of the pages, none below LOWEST; a page that was not found has score 0."""
    values = {key: scores.get(key, 0.0) for key in pages}
    best = heapq.nlargest(POOL, values.values())
    mean, deviation = float(np.mean(best)), float(np.std(best)) or 1.0
    return {key: max((value - mean) / deviation, LOWEST) for key, value in values.items()}


def rank(source: Source, words: WordScores, vectors: VectorScores, searched: Searched) -> list[tuple[PageKey, float]]:
    """Pages that words found or vectors put near, by the sum of their standardised scores, best first.

    For pages whose vectors are not made yet their words speak, with the weight of both.
    """
    weights = source.weights
    by_words = (
        (weights.pages, words.pages),
        (weights.windows, words.best_windows),
        (weights.parts, words.parts),
    )
    by_vectors = (
        (weights.window_vectors, vectors.best_windows),
        (weights.passage_vectors, vectors.best_passages),
    )
    pages = candidates(words, vectors)
    embedded = pages & vectors.best_windows.keys()
    total = _added(by_words, pages)
    share = sum(w for w, scores in by_vectors if scores) / (sum(w for w, scores in by_words if scores) or 1.0)
    for key in pages - embedded:
        total[key] *= 1 + share
    for key, value in _added(by_vectors, embedded).items():
        total[key] += value
    for key in listings(source.db, searched) & pages:
        total[key] -= LISTING_PENALTY
    total = _with_neighbours(total, weights.neighbour)
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))


def _with_neighbours(total: Mapping[PageKey, float], share: float) -> dict[PageKey, float]:
    """Each page's score with a share of the better one of the page before and the page after."""

    def best(key: PageKey) -> float:
        document, page = key
        return max(total.get((document, page - 1), LOWEST), total.get((document, page + 1), LOWEST))

    return {key: value + share * best(key) for key, value in total.items()}


def _added(methods: Sequence[tuple[float, Scores]], pages: set[PageKey]) -> dict[PageKey, float]:
    total = dict.fromkeys(pages, 0.0)
    for weight, scores in methods:
        if scores and pages:
            for key, value in standardised(scores, pages).items():
                total[key] += weight * value
    return total


def candidates(words: WordScores, vectors: VectorScores) -> set[PageKey]:
    near = vectors.best_windows, vectors.best_passages
    nearest = (heapq.nlargest(NEAREST_PAGES, scores, key=scores.__getitem__) for scores in near)
    return {*words.pages, *words.best_windows, *words.parts, *chain.from_iterable(nearest)}


def listings(db: Database, searched: Searched) -> set[PageKey]:
    """Pages of tables of contents and indexes."""
    rows = db.tuples(
        f"SELECT document_id, page_index FROM pages WHERE listing = 1 AND {searched.condition}",
        searched.values(),
    )
    return {(document, page) for document, page in rows}


def _hit(
    db: Database, names: Mapping[DocumentId, str], key: PageKey, score: float, words: WordScores, vectors: VectorScores
) -> Hit | None:
    """The page's best passage as a hit; None for a page without passages."""
    document, page = DocumentId(key[0]), key[1]
    passage_id = _best_passage(db, key, words, vectors)
    if passage_id is None:
        return None
    passage = records.passages(db, "id = ?", (passage_id,))[0]
    return Hit(
        document_id=document,
        document=names[document],
        passage=passage,
        score=score,
        page_index=page,
        pages=passage.pages,
        page_label="",
        span=passage.ranges[0],
        text=passage.text[: records.passage_pieces(db, passage_id)[0].count],
        why={
            "words": max(words.best_windows.get(key, 0.0), words.parts.get(key, 0.0)),
            "vectors": vectors.best_windows.get(key, 0.0),
        },
    )


def _best_passage(db: Database, key: PageKey, words: WordScores, vectors: VectorScores) -> int | None:
    """The passage with the page's best window: words as part of the best found anywhere, plus the cosine."""
    rows = db.tuples(
        "SELECT passage_id, id, ordinal FROM windows WHERE document_id = ? AND page_index = ? ORDER BY ordinal", key
    )
    most = max(words.windows.values(), default=1.0)
    scores = vectors.documents.get(key[0])
    cosines = scores.windows if scores else ()

    def value(row: tuple[int, int, int]) -> float:
        _, window, ordinal = row
        return words.windows.get(window, 0.0) / most + (float(cosines[ordinal]) if ordinal < len(cosines) else 0.0)

    return max(rows, key=value)[0] if rows else None
