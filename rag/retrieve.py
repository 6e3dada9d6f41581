"""Finding the passages that answer a question: words and vectors, standardised and added."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag.index import records
from rag.index.database import Database
from rag.index.vectors import VectorFiles
from rag.protocols import Embedder
from rag.sentences import IDEOGRAPH
from rag.stop_words import STOP_WORDS
from rag.types import CharRange, Document, DocumentId, Hit

PageKey = tuple[int, int]  # document, page
Scores = Mapping[PageKey, float]

POOL = 50  # pages whose scores give mean and deviation of a method
WINDOW_POOL = 400
LISTING_PENALTY = 4.0
TERM = re.compile(r"\w+(?:[^\w\s]+\w+)*")


@dataclass(frozen=True)
class Weights:
    """Parts of the sum; found on the development set, see `rag.evaluate`."""

    pages: float = 1.0
    windows: float = 1.0
    vectors: float = 1.0
    parts: float = 1.0
    heading: float = 0.5


@dataclass(frozen=True)
class Source:
    """What is searched. Without an embedder words alone count."""

    db: Database
    vectors: VectorFiles
    embedder: Embedder | None
    weights: Weights = Weights()


@dataclass(frozen=True)
class Found:
    """Best score of a window per page, and per window (by row id)."""

    pages: Scores
    windows: Mapping[int, float]


def search(source: Source, query: str, documents: Sequence[Document], top: int) -> list[Hit]:
    """Hits over the given documents, one per page, best first; their page labels are left empty."""
    if not documents or not query.strip() or top < 1:
        return []
    chosen = json.dumps([int(document.id) for document in documents])
    words = word_scores(source, query, chosen)
    vectors = vector_scores(source, query, documents)
    ranked = rank(source, words, vectors, chosen)[:top]
    names = {document.id: document.name for document in documents}
    hits = [_hit(source.db, names, key, score, words, vectors) for key, score in ranked]
    return [hit for hit in hits if hit is not None]


@dataclass(frozen=True)
class WordScores:
    pages: Scores
    windows: Found
    parts: Scores


def word_scores(source: Source, query: str, chosen: str) -> WordScores:
    expression = match_expression(query)
    pages = _pages(source.db, "page_words", expression, chosen) if expression else {}
    windows = _windows(source.db, expression, chosen, source.weights.heading) if expression else Found({}, {})
    parts = part_expression(query)
    return WordScores(pages, windows, _pages(source.db, "page_parts", parts, chosen) if parts else {})


def match_expression(query: str) -> str:
    """FTS5 expression: any of the words that are no stop words (any word if all are). A word with marks
    inside, like DEB_GAIN_ROOT_CMD or avr-gcc, is a phrase and must stand as a whole."""
    terms = list(dict.fromkeys(TERM.findall(query)))
    telling = [term for term in terms if term.casefold() not in STOP_WORDS] or terms
    return " OR ".join(f'"{term}"' for term in telling)


def part_expression(query: str) -> str:
    """Expression for the trigram index, for writing without spaces: overlapping pieces of three characters."""
    runs = re.findall(rf"(?:{IDEOGRAPH.pattern})+", query)
    pieces = [run[n : n + 3] for run in runs for n in range(max(1, len(run) - 2)) if len(run) >= 3]
    return " OR ".join(f'"{piece}"' for piece in dict.fromkeys(pieces))


def _pages(db: Database, table: str, expression: str, chosen: str) -> Scores:
    rows = db.tuples(
        f"SELECT document_id, page_index, -bm25({table}) AS score FROM {table} JOIN pages ON pages.id = {table}.rowid"
        f" WHERE {table} MATCH ? AND document_id IN (SELECT value FROM json_each(?)) ORDER BY score DESC LIMIT ?",
        (expression, chosen, WINDOW_POOL),
    )
    return {(document, page): score for document, page, score in rows}


def _windows(db: Database, expression: str, chosen: str, heading: float) -> Found:
    rows = db.tuples(
        "SELECT windows.id, document_id, page_index, -bm25(window_words, ?, 1.0) AS score"
        " FROM window_words JOIN windows ON windows.id = window_words.rowid WHERE window_words MATCH ?"
        " AND document_id IN (SELECT value FROM json_each(?)) ORDER BY score DESC LIMIT ?",
        (heading, expression, chosen, WINDOW_POOL),
    )
    return _best_per_page((window, (document, page), score) for window, document, page, score in rows)


def vector_scores(source: Source, query: str, documents: Sequence[Document]) -> Found:
    """Cosines of the nearest windows."""
    if source.embedder is None:
        return Found({}, {})
    vector = source.embedder.embed([query])[0]
    parts: list[tuple[float, DocumentId, int]] = []
    for document in documents:
        scores = source.vectors.scores(document.id, document.sha256, source.embedder.name, vector)
        best = np.argsort(-scores)[:WINDOW_POOL]
        parts.extend((float(scores[row]), document.id, int(row)) for row in best)
    parts.sort(reverse=True)
    return _best_per_page(_placed(source.db, parts[:WINDOW_POOL]))


def _placed(db: Database, parts: Sequence[tuple[float, DocumentId, int]]) -> Iterable[tuple[int, PageKey, float]]:
    rows = db.tuples(
        "SELECT windows.id, document_id, page_index, ordinal FROM windows JOIN json_each(?) AS wanted"
        " ON document_id = json_extract(wanted.value, '$[0]') AND ordinal = json_extract(wanted.value, '$[1]')",
        (json.dumps([(document, row) for _, document, row in parts]),),
    )
    scores = {(document, row): score for score, document, row in parts}
    for window, document, page, ordinal in rows:
        yield window, (document, page), scores[document, ordinal]


def _best_per_page(rows: Iterable[tuple[int, PageKey, float]]) -> Found:
    pages: dict[PageKey, float] = {}
    windows: dict[int, float] = {}
    for window, key, score in rows:
        windows[window] = score
        pages[key] = max(score, pages.get(key, score))
    return Found(pages, windows)


def standardised(scores: Mapping[PageKey, float]) -> dict[PageKey, float]:
    """z-scores over the POOL best."""
    best = sorted(scores.values(), reverse=True)[:POOL]
    if len(best) < 2:
        return dict.fromkeys(scores, 1.0)
    mean, deviation = float(np.mean(best)), float(np.std(best)) or 1.0
    return {key: (score - mean) / deviation for key, score in scores.items()}


def rank(source: Source, words: WordScores, vectors: Found, chosen: str) -> list[tuple[PageKey, float]]:
    """Pages by the sum of their standardised scores; a page that a method does not know gets its lowest."""
    weights = source.weights
    methods = [
        (weights.pages, standardised(words.pages)),
        (weights.windows, standardised(words.windows.pages)),
        (weights.vectors, standardised(vectors.pages)),
        (weights.parts, standardised(words.parts)),
    ]
    total: dict[PageKey, float] = {}
    keys = {key for _, scores in methods for key in scores}
    for weight, scores in methods:
        lowest = max(min(scores.values(), default=0.0), -1.0)
        for key in keys:
            total[key] = total.get(key, 0.0) + weight * max(scores.get(key, lowest), -1.0)
    for key in listings(source.db, chosen) & keys:
        total[key] -= LISTING_PENALTY
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))


def listings(db: Database, chosen: str) -> set[PageKey]:
    """Pages of tables of contents and indexes."""
    rows = db.tuples(
        "SELECT document_id, page_index FROM pages WHERE listing = 1"
        " AND document_id IN (SELECT value FROM json_each(?))",
        (chosen,),
    )
    return {(document, page) for document, page in rows}


def _hit(
    db: Database,
    names: Mapping[DocumentId, str],
    key: PageKey,
    score: float,
    words: WordScores,
    vectors: Found,
) -> Hit | None:
    """The page's best passage as a hit; None for a page without passages."""
    document, page = DocumentId(key[0]), key[1]
    rows = db.tuples(
        "SELECT passage_id, id FROM windows WHERE document_id = ? AND page_index = ? ORDER BY ordinal", key
    )
    if not rows:
        return None
    by_words, by_vectors = _scaled(words.windows.windows), _scaled(vectors.windows)
    passage_id = max(rows, key=lambda row: by_words.get(row[1], 0.0) + by_vectors.get(row[1], 0.0))[0]
    passage = records.passages(db, "id = ?", (passage_id,))[0]
    span = passage.ranges[0]
    why = {
        "words": words.windows.pages.get(key, words.pages.get(key, 0.0)),
        "vectors": vectors.pages.get(key, 0.0),
    }
    return Hit(
        document, names[document], passage, score, page, tuple(r.page_index for r in passage.ranges),
        "", CharRange(page, span.char_start, span.char_count), _first_piece(db, passage_id, passage.text), why,
    )  # fmt: skip


def _first_piece(db: Database, passage_id: int, text: str) -> str:
    return text[: records.passage_pieces(db, passage_id)[0].count]


def _scaled(scores: Mapping[int, float]) -> dict[int, float]:
    """Scores as parts of the best."""
    best = max(scores.values(), default=1.0) or 1.0
    return {key: score / best for key, score in scores.items()}
