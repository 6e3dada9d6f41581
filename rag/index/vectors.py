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
BLOCK_ROWS = 8192  # converted to float32 at a time: 12 MB at 384 dimensions
KEPT_BYTES = 200_000_000  # of vectors kept in float32: converting takes ten times as long as the product


@dataclass(frozen=True)
class WindowPlaces:
    """Page and passage (its position in the document) of each window: int64 [rows]; and per passage the length
    of the sum of its windows' vectors: float32 [passages]."""

    pages: npt.NDArray[np.int64]
    passages: npt.NDArray[np.int64]
    lengths: Vectors


@dataclass(frozen=True)
class DocumentScores:
    """`windows`: cosine of each window with a query, float32 [rows]."""

    windows: Vectors
    places: WindowPlaces

    def best_windows(self) -> dict[int, float]:
        """Per page the cosine of its nearest window."""
        return best_of(self.places.pages, self.windows)

    def best_passages(self) -> dict[int, float]:
        """Per page the cosine of its nearest passage, whose vector is the sum of its windows'."""
        places = self.places
        cosines = np.bincount(places.passages, self.windows) / np.maximum(places.lengths, 1e-6)
        return best_of(places.pages, cosines[places.passages].astype(np.float32))


def best_of(keys: npt.NDArray[np.int64], values: Vectors) -> dict[int, float]:
    """The highest value of each key."""
    best = np.full(int(keys.max()) + 1, -np.inf, np.float32)
    np.maximum.at(best, keys, values)
    return {int(key): float(best[key]) for key in np.flatnonzero(np.isfinite(best))}


def blocks(matrix: Matrix) -> Iterator[tuple[int, Vectors]]:
    """(first row, rows as float32), BLOCK_ROWS at a time."""
    for first in range(0, len(matrix), BLOCK_ROWS):
        yield first, matrix[first : first + BLOCK_ROWS].astype(np.float32)


def passage_lengths(matrix: Matrix, passages: npt.NDArray[np.int64]) -> Vectors:
    """Length of the sum of each passage's rows; `passages` [rows] is ascending."""
    sums = np.zeros((int(passages[-1]) + 1, matrix.shape[1]), np.float32)
    for first, block in blocks(matrix):
        mine = passages[first : first + len(block)]
        starts = np.flatnonzero(np.diff(mine, prepend=-1))
        sums[mine[starts]] += np.add.reduceat(block, starts, axis=0)
    return np.asarray(np.linalg.norm(sums, axis=1), np.float32)


class VectorFiles:
    def __init__(self, folder: Path, db: Database) -> None:
        self._known: dict[tuple[DocumentId, str], WindowPlaces] = {}
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
        path = private_file(self._path(sha256, embedder))
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
        return DocumentScores(cosines, self._places(document_id, embedder, matrix))

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

    def _places(self, document_id: DocumentId, embedder: str, matrix: Matrix) -> WindowPlaces:
        """Kept once made: windows do not change after their vectors were begun."""
        known = self._known.get((document_id, embedder))
        if known is None or len(known.pages) != len(matrix):
            found = self._db.tuples(
                "SELECT windows.page_index, passages.ordinal FROM windows JOIN passages ON passages.id = passage_id"
                " WHERE windows.document_id = ? AND windows.ordinal < ? ORDER BY windows.ordinal",
                (document_id, len(matrix)),
            )
            pages, passages = np.array(found, np.int64).T
            known = WindowPlaces(pages, passages, passage_lengths(matrix, passages))
            self._known[document_id, embedder] = known
        return known

    def forget(self, document_id: DocumentId) -> None:
        """Drops what is kept in memory about a document whose windows were cut anew."""
        for key in [key for key in self._known if key[0] == document_id]:
            del self._known[key]
        with self._kept_lock:
            self._floats.clear()

    def remove(self, sha256: str) -> None:
        for path in self._folder.glob(f"{sha256}.*.f16"):
            path.unlink(missing_ok=True)
            with self._kept_lock:
                self._floats.pop(path, None)

    def _path(self, sha256: str, embedder: str) -> Path:
        return self._folder / f"{sha256}.{re.sub(r'[^A-Za-z0-9_-]+', '-', embedder)}.f16"
