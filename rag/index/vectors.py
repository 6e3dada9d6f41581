"""Float16 vectors, one append-only file per document and embedder, read as memory maps.

Row n of a file is the vector of the document's window n. The database says how many rows count: what a killed
writer left beyond them is written over.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag.index.database import Database, private_file
from rag.protocols import Vectors
from rag.types import DocumentId

BLOCK_ROWS = 8192  # converted to float32 at a time: 12 MB at 384 dimensions


class VectorFiles:
    def __init__(self, folder: Path, db: Database) -> None:
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

    def scores(self, document_id: DocumentId, sha256: str, embedder: str, query: Vectors) -> Vectors:
        """Cosine of every counted row with a unit query [d]: float32 [rows]."""
        rows = self.done(document_id, embedder)
        path = self._path(sha256, embedder)
        if rows == 0 or not path.exists() or path.stat().st_size < rows * len(query) * 2:
            return np.zeros(0, np.float32)
        matrix: npt.NDArray[np.float16] = np.memmap(path, "<f2", "r", shape=(rows, len(query)))
        blocks = [matrix[first : first + BLOCK_ROWS].astype(np.float32) @ query for first in range(0, rows, BLOCK_ROWS)]
        return np.concatenate(blocks)

    def remove(self, sha256: str) -> None:
        for path in self._folder.glob(f"{sha256}.*.f16"):
            path.unlink(missing_ok=True)

    def _path(self, sha256: str, embedder: str) -> Path:
        return self._folder / f"{sha256}.{re.sub(r'[^A-Za-z0-9_-]+', '-', embedder)}.f16"
