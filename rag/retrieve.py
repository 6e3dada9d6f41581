"""Finding the passages that answer a question: words and vectors, standardised and added."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from rag.index import records
from rag.index.database import Database
from rag.index.vectors import DocumentScores, VectorFiles
from rag.protocols import Embedder
from rag.sentences import IDEOGRAPH
from rag.stop_words import STOP_WORDS
from rag.types import Document, DocumentId, Hit

PageKey = tuple[int, int]  # document, page
Scores = Mapping[PageKey, float]

POOL = 100  # pages whose scores give mean and deviation of a method
FOUND_ROWS = 1000  # taken from a full-text index
NEAREST_PAGES = 200
LOWEST = -3.0  # no method may throw a page further back than this
LISTING_PENALTY = 4.0
TERM = re.compile(r"\w+(?:[^\w\s]+\w+)*")


@dataclass(frozen=True)
class Weights:
    """Parts of the sum: words and vectors weigh about the same, each at two sizes of text.

    Recall by page @1 / @5 / @10 on the development set (24 questions, 3 PDFs searched together): page words 0.58 /
    0.71 / 0.79, window words 0.67 / 0.71 / 0.75, window vectors 0.62 / 0.75 / 0.79, passage vectors 0.50 / 0.62 /
    0.71, all with these weights 0.75 / 0.88 / 0.88; 0.5 to 1.0 for the vectors moves one question at most.
    """

    pages: float = 0.5
    windows: float = 0.5
    window_vectors: float = 0.7
    passage_vectors: float = 0.7
    parts: float = 1.0
    heading: float = 1.0


@dataclass(frozen=True)
class Source:
    """What is searched, and how. Without an embedder words alone count."""

    db: Database
    vectors: VectorFiles
    embedder: Embedder | None
    weights: Weights = Weights()


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


def search(source: Source, query: str, documents: Sequence[Document], top: int) -> list[Hit]:
    """Hits over the given documents, one per page, best first; their page labels are left empty."""
    if not documents or not query.strip() or top < 1:
        return []
    chosen = json.dumps([int(document.id) for document in documents])
    words = word_scores(source, query, chosen)
    vectors = vector_scores(source, query, documents)
    names = {document.id: document.name for document in documents}
    hits: list[Hit] = []
    for key, score in rank(source, words, vectors, chosen):
        hit = _hit(source.db, names, key, score, words, vectors)
        if hit is not None:
            hits.append(hit)
        if len(hits) == top:
            break
    return hits


def word_scores(source: Source, query: str, chosen: str) -> WordScores:
    expression, parts = match_expression(query), part_expression(query)
    pages = _pages(source.db, "page_words", expression, chosen)
    windows = _windows(source.db, expression, chosen, source.weights.heading)
    best: dict[PageKey, float] = {}
    for _, key, score in windows:
        best.setdefault(key, score)
    by_window = {window: score for window, _, score in windows}
    return WordScores(pages, best, by_window, _pages(source.db, "page_parts", parts, chosen))


def match_expression(query: str) -> str:
    """FTS5 expression: any of the words that are no stop words (any word if all are). A word with marks
    inside, like DEB_GAIN_ROOT_CMD or avr-gcc, is a phrase and must stand as a whole."""
    terms = list(dict.fromkeys(TERM.findall(query)))
    telling = [term for term in terms if term.casefold() not in STOP_WORDS] or terms
    return " OR ".join(quoted(term) for term in telling)


def part_expression(query: str) -> str:
    """Expression for the trigram index, for writing without spaces: overlapping pieces of three characters."""
    runs = re.findall(rf"{IDEOGRAPH.pattern}{{3,}}", query)
    pieces = [run[n : n + 3] for run in runs for n in range(len(run) - 2)]
    return " OR ".join(quoted(piece) for piece in dict.fromkeys(pieces))


def quoted(term: str) -> str:
    """An FTS5 string."""
    return '"' + term.replace('"', '""') + '"'


def _pages(db: Database, table: str, expression: str, chosen: str) -> Scores:
    if not expression:
        return {}
    rows = db.tuples(
        f"SELECT document_id, page_index, -bm25({table}) AS score FROM {table} JOIN pages ON pages.id = {table}.rowid"
        f" WHERE {table} MATCH ? AND document_id IN (SELECT value FROM json_each(?)) ORDER BY score DESC LIMIT ?",
        (expression, chosen, FOUND_ROWS),
    )
    return {(document, page): score for document, page, score in rows}


def _windows(db: Database, expression: str, chosen: str, heading: float) -> list[tuple[int, PageKey, float]]:
    """(window id, page, score), best first."""
    if not expression:
        return []
    rows = db.tuples(
        "SELECT windows.id, document_id, page_index, -bm25(window_words, ?, 1.0) AS score"
        " FROM window_words JOIN windows ON windows.id = window_words.rowid WHERE window_words MATCH ?"
        " AND document_id IN (SELECT value FROM json_each(?)) ORDER BY score DESC LIMIT ?",
        (heading, expression, chosen, FOUND_ROWS),
    )
    return [(window, (document, page), score) for window, document, page, score in rows]


def vector_scores(source: Source, query: str, documents: Sequence[Document]) -> VectorScores:
    if source.embedder is None:
        return VectorScores({}, {}, {})
    vector = source.embedder.embed([query])[0]
    found: dict[int, DocumentScores] = {}
    for document in documents:
        scores = source.vectors.scores(document.id, document.sha256, source.embedder.name, vector)
        if scores is not None:
            found[document.id] = scores
    windows = {(d, page): cosine for d, scores in found.items() for page, cosine in scores.best_windows().items()}
    passages = {(d, page): cosine for d, scores in found.items() for page, cosine in scores.best_passages().items()}
    return VectorScores(windows, passages, found)


def standardised(scores: Scores, pages: set[PageKey]) -> dict[PageKey, float]:
    """z-scores over the POOL best of the pages, none below LOWEST; a page that was not found has score 0."""
    values = {key: scores.get(key, 0.0) for key in pages}
    best = heapq.nlargest(POOL, values.values())
    mean, deviation = float(np.mean(best)), float(np.std(best)) or 1.0
    return {key: max((value - mean) / deviation, LOWEST) for key, value in values.items()}


def rank(source: Source, words: WordScores, vectors: VectorScores, chosen: str) -> list[tuple[PageKey, float]]:
    """Pages that words found or vectors put near, by the sum of their standardised scores, best first."""
    weights = source.weights
    methods = (
        (weights.pages, words.pages),
        (weights.windows, words.best_windows),
        (weights.parts, words.parts),
        (weights.window_vectors, vectors.best_windows),
        (weights.passage_vectors, vectors.best_passages),
    )
    pages = candidates(words, vectors)
    total = dict.fromkeys(pages, 0.0)
    for weight, scores in methods:
        if scores:
            for key, value in standardised(scores, pages).items():
                total[key] += weight * value
    for key in listings(source.db, chosen) & pages:
        total[key] -= LISTING_PENALTY
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))


def candidates(words: WordScores, vectors: VectorScores) -> set[PageKey]:
    near = vectors.best_windows, vectors.best_passages
    nearest = (heapq.nlargest(NEAREST_PAGES, scores, key=scores.__getitem__) for scores in near)
    return {*words.pages, *words.best_windows, *words.parts, *chain.from_iterable(nearest)}


def listings(db: Database, chosen: str) -> set[PageKey]:
    """Pages of tables of contents and indexes."""
    rows = db.tuples(
        "SELECT document_id, page_index FROM pages WHERE listing = 1"
        " AND document_id IN (SELECT value FROM json_each(?))",
        (chosen,),
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
        pages=tuple(part.page_index for part in passage.ranges),
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
