"""Measuring retrieval: recall by page and mean reciprocal rank over a set of questions.

Run as `python -m rag.evaluate LIBRARY SET.jsonl [--embedder FOLDER]`. A line of the set: `pdf` (document name),
`question`, `pages` (0-based, any of them counts), optionally `kind`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rag.library import Library
from rag.protocols import Embedder
from rag.types import DocumentId, Hit

DEPTH = 20
CUTS = (1, 5, 10)


@dataclass(frozen=True)
class Question:
    pdf: str
    question: str
    pages: tuple[int, ...]
    kind: str = ""


@dataclass(frozen=True)
class Recall:
    """Shares of the questions whose page is among the first 1, 5, 10 pages; MRR over the first 20 pages."""

    kind: str
    questions: int
    at_1: float
    at_5: float
    at_10: float
    mrr: float
    query_ms: float


def read_questions(path: Path) -> list[Question]:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Question(q["pdf"], q["question"], tuple(q["pages"]), q.get("kind", "")) for q in lines]


def evaluate(library: Library, questions: Sequence[Question], alone: bool = False) -> list[Recall]:
    """Recall for all questions, then by kind.

    Args:
        alone: search only the question's document; otherwise all documents the set names, together.
    """
    ids = {name: library.find(name).id for name in sorted({q.pdf for q in questions})}
    ranks: list[tuple[str, int | None, float]] = []
    for question in questions:
        searched = [ids[question.pdf]] if alone else list(ids.values())
        start = time.perf_counter()
        hits = library.search(question.question, searched, DEPTH)
        elapsed = 1000 * (time.perf_counter() - start)
        ranks.append((question.kind, rank_of(hits, ids[question.pdf], question.pages), elapsed))
    kinds = ["all", *sorted({kind for kind, _, _ in ranks if kind})]
    return [_recall(kind, [r for r in ranks if kind in ("all", r[0])]) for kind in kinds]


def rank_of(hits: Sequence[Hit], document: DocumentId, pages: Sequence[int]) -> int | None:
    """Place (from 1) of the first right page among the hits' pages, each counted once."""
    seen: list[tuple[DocumentId, int]] = []
    for hit in hits:
        key = (hit.document_id, hit.page_index)
        if key not in seen:
            seen.append(key)
        if hit.document_id == document and hit.page_index in pages:
            return seen.index(key) + 1
    return None


def _recall(kind: str, ranks: Sequence[tuple[str, int | None, float]]) -> Recall:
    found = [rank for _, rank, _ in ranks if rank is not None]
    at = [sum(1 for rank in found if rank <= cut) / len(ranks) for cut in CUTS]
    mrr = sum(1 / rank for rank in found) / len(ranks)
    times = sorted(elapsed for _, _, elapsed in ranks)
    return Recall(kind, len(ranks), at[0], at[1], at[2], mrr, times[len(times) // 2])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Recall of the library's search over a set of questions.")
    parser.add_argument("library", type=Path)
    parser.add_argument("set", type=Path)
    parser.add_argument("--embedder", type=Path, help="a sentence-transformers folder; words alone without it")
    parser.add_argument("--alone", action="store_true", help="search only the question's own document")
    options = parser.parse_args(arguments)
    library = Library(options.library, _embedder(options.embedder))
    try:
        for recall in evaluate(library, read_questions(options.set), options.alone):
            sys.stdout.write(json.dumps(asdict(recall)) + "\n")
    finally:
        library.close()


def _embedder(folder: Path | None) -> Embedder | None:
    from rag.embed import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(folder) if folder else None


if __name__ == "__main__":
    main()
