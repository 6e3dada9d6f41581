"""Vectors of a document's windows, made in portions as large as about half a second allows: beside an answer or another
program an embedder may have a fiftieth of the machine, and whoever watches should see it move. A portion is begun on
the time of those before it: one during which the machine gets busy takes longer, so none is larger than pays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from rag.errors import IntakeCancelled
from rag.index.database import Database
from rag.ingest import Job, Shelf
from rag.protocols import Embedder, Vectors
from rag.types import Document, DocumentId

HEADING_PART = 0.3  # of the heading's vector in a window's: 0.04 more recall@10 on both sets of questions
TEXTS_A_STEP = 64  # written and made durable at once; what a killed import makes again
LEAST_PORTION = 5  # what embedders take for a question (four texts) runs at an answer's priority
MOST_PORTION = 16  # a text costs no less in larger ones; 64 stood still for 13 s where load jumped
LONG_S, AIM_S, SHORT_S = 1.0, 0.5, 0.25  # after a longer portion one of AIM_S follows, after a shorter one its double
KEPT_HEADINGS = 64


class Portions:
    """How many texts are embedded at once: few at first, then what the machine has left. One for all documents that an
    embedder is given: each begins where the one before ended. Threads that share it see one machine."""

    def __init__(self) -> None:
        self.size = LEAST_PORTION

    def took(self, texts: int, seconds: float) -> None:
        """Sets the next size. Fewer texts than `size` (a document's last) never raise it: they prove nothing."""
        if seconds > LONG_S:
            self.size = max(LEAST_PORTION, int(texts * AIM_S / seconds))
        elif seconds < SHORT_S and texts >= self.size:
            self.size = min(MOST_PORTION, self.size * 2)


def embed_windows(shelf: Shelf, job: Job, document: Document, portions: Portions) -> None:
    """Makes the vectors that are missing, if there is an embedder."""
    if shelf.embedder is None:
        return
    name = shelf.embedder.name
    done = shelf.vectors.done(document.id, name)
    total = shelf.db.tuples("SELECT windows FROM documents WHERE id = ?", (document.id,))[0][0]
    if total == 0:
        shelf.vectors.count(document.id, name, 0)
    maker = WindowVectors(shelf.embedder, portions)
    while done < total:
        texts = window_texts(shelf.db, document.id, done, TEXTS_A_STEP)
        rows: list[Vectors] = []
        made = 0
        while made < len(texts):
            job.report(document.id, "vectors", done + made, total)
            rows.append(maker.next(texts[made:]))
            made += len(rows[-1])
        done = shelf.vectors.append(document.id, document.sha256, name, np.concatenate(rows))
        if done < total and job.gives_way():
            raise IntakeCancelled(str(job.path))


def incomplete(document: Document) -> bool:
    return document.state == "importing" or not document.embedded


class CompletionOrder:
    """Documents to complete, one after the other: those of `first`, then the others, short ones first.

    documents: asked again before each one, and while one is at work: what comes in meanwhile goes before what is
    longer, which is given once more then.
    """

    def __init__(self, documents: Callable[[], Iterable[Document]], first: Sequence[DocumentId]) -> None:
        self._documents = documents
        self._first = frozenset(first)
        self._had: set[DocumentId] = set()

    def __iter__(self) -> Iterator[Document]:
        while (best := self._best()) is not None:
            self._had.add(best.id)
            yield best

    def give_way(self, document: Document) -> bool:
        """Whether another one goes before the one at work, which is then still to be completed."""
        best = self._best()
        if best is None or self._rank(best) > self._rank(document):
            return False
        self._had.discard(document.id)
        return True

    def _best(self) -> Document | None:
        left = (one for one in self._documents() if incomplete(one) and one.id not in self._had)
        return min(left, key=self._rank, default=None)

    def _rank(self, document: Document) -> tuple[bool, int, DocumentId]:
        return document.id not in self._first, document.pages, document.id


@dataclass
class WindowVectors:
    """Of one document's windows, in order; for one thread."""

    embedder: Embedder
    portions: Portions = field(default_factory=Portions)
    _headings: dict[str, Vectors] = field(default_factory=dict)  # the latest: windows of a section stand together

    def next(self, texts: Sequence[tuple[str, str]]) -> Vectors:
        """Unit vectors [n, d] of the first n, as many as the last portions' time suggests."""
        began = time.monotonic()
        vectors = self.of(texts[: self.portions.size])
        self.portions.took(len(vectors), time.monotonic() - began)
        return vectors

    def of(self, texts: Sequence[tuple[str, str]]) -> Vectors:
        """Unit vectors [n, d] of (text, heading path): the text's with a part of its heading's."""
        new = sorted({heading for _, heading in texts if heading} - self._headings.keys())
        made = self.embedder.embed([text for text, _ in texts] + new)
        vectors = made[: len(texts)].copy()
        self._headings.update(zip(new, made[len(texts) :], strict=True))
        for row, (_, heading) in enumerate(texts):
            if heading:
                vectors[row] += HEADING_PART * self._headings[heading]
        while len(self._headings) > KEPT_HEADINGS:
            del self._headings[next(iter(self._headings))]
        length = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return np.asarray(vectors / length, np.float32)


def window_texts(db: Database, document_id: DocumentId, first: int, count: int) -> list[tuple[str, str]]:
    """What is embedded for windows `first` and on: their text on one line, and the headings above it."""
    rows = db.tuples(
        "SELECT text, heading FROM window_texts WHERE document_id = ? AND ordinal >= ? ORDER BY ordinal LIMIT ?",
        (document_id, first, count),
    )
    return [(" ".join(text.split()), heading) for text, heading in rows]
