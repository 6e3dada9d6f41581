"""A library in a temporary folder, and an embedder small enough to be checked by hand."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from assets import sample_pdf
from rag import Document, Library
from rag.protocols import Vectors


class WordBag:
    """Counts of words by their checksum, 64 numbers: texts with the same words have cosine 1."""

    name = "word-bag"
    dimensions = 64
    loaded = True

    def __init__(self) -> None:
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[0] = 1e-3
            for word in text.lower().split():
                row[zlib.crc32(word.strip(".,:").encode()) % self.dimensions] += 1
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    made = Library(tmp_path / "library")
    yield made
    made.close()


@pytest.fixture
def sample(library: Library) -> Document:
    return library.add(sample_pdf())
