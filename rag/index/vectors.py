"""Float16 vectors, one append-only file per document and embedder, read as memory maps.

Row n of a file is the vector of the document's window n. The database says how many rows count: what a killed
writer left beyond them is written over.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag.index.database import Database, private_file
from rag.protocols import Vectors
from rag.types import DocumentId

Matrix = npt.NDArray[np.float16]
Pages = npt.NDArray[np.int64]
BLOCK_ROWS = 8192  # converted to float32 at a time: 12 MB at 384 dimensions
TOGETHER = 3  # windows that speak for a page
KEPT_BYTES = 200_000_000  # of vectors kept in float32: converting takes ten times as long as the product


@dataclass(frozen=True)
class DocumentScores:
    """`windows`: cosine of each window with a query, float32 [rows]; `pages`: where each is, int64 [rows]."""

    windows: Vectors
    pages: Pages

    def best_windows(self) -> dict[int, float]:
        """Per page the cosine of its nearest window."""
        best = _best(self.pages, self.windows)
        return _by_page(best, np.isfinite(best))

    def together(self) -> dict[int, float]:
        """Per page the cosines of its TOGETHER nearest windows added, each for half of the one before."""
        left = self.windows.copy()
        total = _best(self.pages, left)
        has_windows, best = np.isfinite(total), total.copy()
        for rank in range(1, TOGETHER):
            left[left == best[self.pages]] = -np.inf
            best = _best(self.pages, left)
            total += np.where(np.isfinite(best), best, 0) * np.float32(0.5**rank)
        return _by_page(total, has_windows)


def _by_page(values: Vectors, chosen: npt.NDArray[np.bool_]) -> dict[int, float]:
    pages = np.flatnonzero(chosen)
    return dict(zip(pages.tolist(), values[pages].tolist(), strict=True))


def _best(pages: Pages, values: Vectors) -> Vectors:
    """The highest value of each page, from page 0 on."""
    best = np.full(int(pages.max()) + 1, -np.inf, np.float32)
    np.maximum.at(best, pages, values)
    return best


def blocks(matrix: Matrix) -> Iterator[tuple[int, Vectors]]:
    """(first row, rows as float32), BLOCK_ROWS at a time."""
    for first in range(0, len(matrix), BLOCK_ROWS):
        yield first, matrix[first : first + BLOCK_ROWS].astype(np.float32)


class VectorFiles:
    def __init__(self, folder: Path, db: Database) -> None:
        self._known: dict[DocumentId, tuple[int, Pages]] = {}  # with the time of change of the vectors' file
        self._floats: dict[Path, tuple[int, Vectors]] = {}  # with the file's time of change
        self._kept_lock = threading.Lock()
        self._folder = folder
        self._db = db

    def done(self, document_id: DocumentId, embedder: str) -> int:
        """Rows that count, 0 if there are none."""
        row = self._db.row("SELECT done FROM vectors WHERE document_id = ? AND embedder = ?", (document_id, embedder))
        return int(row["done"]) if row else 0

    def append(self, document_id: DocumentId, sha256: str, embedder: str, vectors: Vectors) -> int:
        """Writes the next rows [n, d], makes them durable, then counts them; returns the new number of rows."""
        done = self.done(document_id, embedder)
        path = self._path(sha256, embedder)
        if not done:  # vectors made anew: whoever has the old ones mapped keeps them
            path.unlink(missing_ok=True)
        path = private_file(path)
        with path.open("r+b") as file:
            file.seek(done * vectors.shape[1] * 2)
            file.write(vectors.astype("<f2").tobytes())
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        self.count(document_id, embedder, done + len(vectors))
        return done + len(vectors)

    def count(self, document_id: DocumentId, embedder: str, done: int) -> None:
        with self._db.transaction():
            self._db.run(
                "INSERT INTO vectors VALUES (?, ?, ?) ON CONFLICT (document_id, embedder) DO UPDATE SET done = ?",
                (document_id, embedder, done, done),
            )

    def scores(self, document_id: DocumentId, sha256: str, embedder: str, query: Vectors) -> DocumentScores | None:
        """Cosines with a unit query [d]; None while the document has no vectors."""
        rows = self.done(document_id, embedder)
        path = self._path(sha256, embedder)
        if rows == 0 or not path.exists() or path.stat().st_size < rows * len(query) * 2:
            return None
        matrix: Matrix = np.memmap(path, "<f2", "r", shape=(rows, len(query)))
        # Not `block @ query`: BLAS takes all cores for it and waits for the busy ones (24 ms against 9 beside a
        # running model, 7,355 rows).
        cosines = np.concatenate([np.einsum("ij,j->i", block, query) for block in self._blocks(path, matrix)])
        pages = self._pages(document_id, path.stat().st_mtime_ns)[: len(cosines)]
        return DocumentScores(cosines, pages) if len(pages) == len(cosines) else None  # else it is being cut anew

    def _blocks(self, path: Path, matrix: Matrix) -> Iterable[Vectors]:
        """The matrix in float32, kept from one query to the next as far as KEPT_BYTES goes; the oldest goes first."""
        changed = path.stat().st_mtime_ns
        with self._kept_lock:
            time, kept = self._floats.pop(path, (0, None))
            if kept is None or time != changed or len(kept) != len(matrix):
                if 4 * matrix.size > KEPT_BYTES:
                    return (block for _, block in blocks(matrix))
                kept = matrix.astype(np.float32)
            self._floats[path] = (changed, kept)
            while sum(floats.nbytes for _, floats in self._floats.values()) > KEPT_BYTES:
                del self._floats[next(iter(self._floats))]
        return (kept,)

    def _pages(self, document_id: DocumentId, changed: int) -> Pages:
        """Of each window; kept while the vectors' file stays: windows cut anew, by any process, get new vectors."""
        time, known = self._known.get(document_id, (0, None))
        if known is None or time != changed:
            found = self._db.tuples(
                "SELECT page_index FROM windows WHERE document_id = ? ORDER BY ordinal", (document_id,)
            )
            known = np.array(found, np.int64).ravel()
            self._known[document_id] = (changed, known)
        return known

    def remove(self, sha256: str) -> None:
        for path in self._folder.glob(f"{sha256}.*.f16"):
            path.unlink(missing_ok=True)
            with self._kept_lock:
                self._floats.pop(path, None)

    def _path(self, sha256: str, embedder: str) -> Path:
        return self._folder / f"{sha256}.{re.sub(r'[^A-Za-z0-9_-]+', '-', embedder)}.f16"
