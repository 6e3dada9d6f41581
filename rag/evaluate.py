"""Measuring retrieval: recall by page and mean reciprocal rank over a set of questions.

Run as `python -m rag.evaluate LIBRARY SET.jsonl [--embedder FOLDER]`. A line of the set: `pdf` (document name),
`question`, `pages` (0-based, any of them counts), optionally `kind` and `also`: pages of other documents that answer
as well, by document name. Intervals are Wilson's, at 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rag.errors import DocumentError
from rag.library import Library, VectorUse
from rag.protocols import Embedder
from rag.types import Document, DocumentId, Hit

DEPTH = 20
CUTS = (1, 5, 10)
Z95 = 1.959964  # of the standard normal distribution
Interval = tuple[float, float]


@dataclass(frozen=True)
class Question:
    """`line`: of its file, from 1."""

    pdf: str
    question: str
    pages: tuple[int, ...]
    kind: str = ""
    also: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    line: int = field(default=0, compare=False)

    @property
    def answers(self) -> dict[str, tuple[int, ...]]:
        """Pages that answer, by document name."""
        return {**self.also, self.pdf: self.pages}


@dataclass(frozen=True)
class Recall:
    """Shares of the questions whose page is among the first 1, 5, 10 pages, each with its 95 % interval; MRR over
    the first 20 pages; median time of a query."""

    kind: str
    questions: int
    at_1: float
    at_5: float
    at_10: float
    at_1_interval: Interval
    at_5_interval: Interval
    at_10_interval: Interval
    mrr: float
    query_ms: float


def read_questions(path: Path) -> list[Question]:
    """Errors: DocumentError of kind "set"."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise _no_set(path, f"It cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    found = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(_question(line, number))
            except ValueError as error:
                raise _no_set(path, f"Line {number}: {error}.") from error
    if not found:
        raise DocumentError(f"{path.name} is no set of questions.", "It is empty.", "Write a question in it.", "set")
    return found


def _no_set(path: Path, why: str) -> DocumentError:
    next_step = "Each line is an object with pdf, question, pages (from 0) and, if you like, kind."
    return DocumentError(f"{path.name} is no set of questions.", why, next_step, "set")


def _question(line: str, number: int) -> Question:
    """Raises ValueError with a reader's words."""
    try:
        q = json.loads(line)
    except ValueError as error:
        raise ValueError("it is not JSON") from error
    if not isinstance(q, dict):
        raise ValueError("it is not an object in braces")
    for key in ("pdf", "question"):
        if not isinstance(q.get(key), str):
            raise ValueError(f"{key} is missing or no text")
    also = q.get("also", {})
    if not isinstance(also, dict):
        raise ValueError("also is not an object of document names with pages")
    others = {pdf: _pages(pages, f"also of {pdf}") for pdf, pages in also.items()}
    return Question(q["pdf"], q["question"], _pages(q.get("pages"), "pages"), str(q.get("kind", "")), others, number)


def _pages(values: object, key: str) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(value) is int and value >= 0 for value in values):
        raise ValueError(f"{key} is not a list of page numbers from 0, as [3, 4]")
    return tuple(values)


def documents_of(library: Library, questions: Sequence[Question]) -> dict[str, Document]:
    """The documents that a set names. Errors: DocumentError when one is not there, or has fewer pages than named."""
    documents = {name: library.find(name) for name in sorted({pdf for q in questions for pdf in q.answers})}
    for question in questions:
        for pdf, pages in question.answers.items():
            last = documents[pdf].pages - 1
            if (page := max(pages, default=0)) > last:
                what = f"Line {question.line} of the set names a page that is not there: {page} of {pdf}."
                raise DocumentError(what, f"Its pages are 0 to {last}, counted in the file.", "Correct it.", "set")
    return documents


def evaluate(
    library: Library, questions: Sequence[Question], alone: bool = False, vectors: VectorUse = "wait"
) -> list[Recall]:
    """Recall for all questions, then by kind.

    Args:
        alone: search only the question's document; otherwise all documents the set names, together.
        vectors: as for `Library.search`.
    """
    ids = {name: document.id for name, document in documents_of(library, questions).items()}
    ranks: list[tuple[str, int | None, float]] = []
    for question in questions:
        searched = [ids[question.pdf]] if alone else list(ids.values())
        start = time.perf_counter()
        hits = library.search(question.question, searched, DEPTH, vectors)
        elapsed = 1000 * (time.perf_counter() - start)
        right = {(ids[pdf], page) for pdf, pages in question.answers.items() for page in pages}
        ranks.append((question.kind, rank_of(hits, right), elapsed))
    kinds = ["all", *sorted({kind for kind, _, _ in ranks if kind})]
    return [_recall(kind, [r for r in ranks if kind in ("all", r[0])]) for kind in kinds]


def rank_of(hits: Sequence[Hit], right: Set[tuple[DocumentId, int]]) -> int | None:
    """Place (from 1) of the first right page among the hits' pages, each counted once."""
    pages = dict.fromkeys((hit.document_id, hit.page_index) for hit in hits)
    return next((place for place, page in enumerate(pages, 1) if page in right), None)


def _recall(kind: str, ranks: Sequence[tuple[str, int | None, float]]) -> Recall:
    found = [rank for _, rank, _ in ranks if rank is not None]
    hits = [sum(1 for rank in found if rank <= cut) for cut in CUTS]
    times = sorted(elapsed for _, _, elapsed in ranks)
    at_1, at_5, at_10 = (count / len(ranks) for count in hits)
    interval_1, interval_5, interval_10 = (wilson(count, len(ranks)) for count in hits)
    return Recall(
        kind=kind,
        questions=len(ranks),
        at_1=at_1,
        at_5=at_5,
        at_10=at_10,
        at_1_interval=interval_1,
        at_5_interval=interval_5,
        at_10_interval=interval_10,
        mrr=sum(1 / rank for rank in found) / len(ranks),
        query_ms=times[len(times) // 2],
    )


def wilson(hits: int, trials: int) -> Interval:
    """95 % interval of a share (Wilson's score interval)."""
    share, square = hits / trials, Z95 * Z95 / trials
    middle = (share + square / 2) / (1 + square)
    half = Z95 * math.sqrt(share * (1 - share) / trials + square / trials / 4) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


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
