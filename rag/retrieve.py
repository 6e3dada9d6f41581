"""Finding the passages that answer a question: words and vectors, standardised and added."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from rag.index import records
from rag.index.database import Database
from rag.index.vectors import DocumentScores, VectorFiles
from rag.protocols import Embedder
from rag.types import Document, DocumentId, Hit
from rag.words import PageKey, Scores, Searched, WordScores, word_scores

POOL = 100  # pages whose scores give mean and deviation of a method
NEAREST_PAGES = 200
LOWEST = -3.0  # no method may throw a page further back than this
LISTING_PENALTY = 4.0


@dataclass(frozen=True)
class Weights:
    """Parts of the sum: words and vectors weigh the same, each at two sizes of text.

    Chosen on two sets of questions (24 over 3 PDFs, 66 over 4 others) and confirmed on a third (61 over 4 more). How
    many of the question's words a page has counts more than how rare they are: that keeps one rare word from winning.
    A page speaks with its three nearest windows. A part of the better neighbouring page's score was never worse on
    four sets: pages about one thing stand together.
    """

    pages: float = 0.2
    terms: float = 0.4
    windows: float = 0.4
    window_vectors: float = 0.6
    page_vectors: float = 0.6
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
class VectorScores:
    """Cosines of the nearest window and of the nearest ones together per page, and per document of all windows."""

    best_windows: Scores
    together: Scores
    documents: Mapping[int, DocumentScores]


def search(
    source: Source,
    query: str,
    documents: Sequence[Document],
    top: int,
    pages: Mapping[DocumentId, Sequence[int]] | None = None,
) -> list[Hit]:
    """Hits over the given documents, one per page, best first; their page labels are left empty.

    Args:
        pages: of a document, when not all of them are searched.
    """
    if not documents or not query.strip() or top < 1:
        return []
    searched = Searched(tuple(documents), pages or {})
    words = word_scores(source.db, query, searched, source.weights.heading)
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
    together = {(d, page): cosine for d, scores in found.items() for page, cosine in scores.together().items()}
    if searched.pages:
        windows = {key: cosine for key, cosine in windows.items() if searched.has(key)}
        together = {key: cosine for key, cosine in together.items() if searched.has(key)}
    return VectorScores(windows, together, found)


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
        (weights.terms, words.terms),
        (weights.windows, words.best_windows),
        (weights.parts, words.parts),
    )
    by_vectors = (
        (weights.window_vectors, vectors.best_windows),
        (weights.page_vectors, vectors.together),
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
    near = vectors.best_windows, vectors.together
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
