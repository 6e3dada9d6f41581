"""Vectors of windows: portions that fit the time there is, and progress in between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rag import IngestProgress, Library, window_vectors
from rag.protocols import Vectors
from rag.window_vectors import WindowVectors
from tests.rag import pdf_files
from tests.rag.conftest import WordBag


class Slow(WordBag):
    """Takes a second of a clock of its own for each text."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.now = seconds, 0.0
        self.batches: list[list[str]] = []

    def monotonic(self) -> float:
        return self.now

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.now += self.seconds * len(texts)
        self.batches.append(list(texts))
        return super().embed(texts)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow(1.0)
    monkeypatch.setattr(window_vectors, "time", slow)
    return slow


def portions(maker: WindowVectors, texts: list[tuple[str, str]]) -> tuple[list[int], Vectors]:
    rows: list[Vectors] = []
    while (made := sum(map(len, rows))) < len(texts):
        rows.append(maker.next(texts[made:]))
    return [len(part) for part in rows], np.concatenate(rows)


def test_portions_shrink_where_a_text_takes_long_and_grow_again(clock: Slow) -> None:
    texts = [(f"text {n}", "") for n in range(200)]
    maker = WindowVectors(clock)
    assert portions(maker, texts[:100])[0] == [64, 32, 4], "the last is what was left"
    assert portions(maker, texts[:20])[0] == [8, 4, 4, 4]
    clock.seconds = 0.001
    assert portions(maker, texts)[0] == [4, 8, 16, 32, 64, 64, 12]


def test_portions_make_no_difference(clock: Slow) -> None:
    texts = [(f"text {n} of {n % 7}", f"heading {n // 50}") for n in range(150)]
    sizes, slow = portions(WindowVectors(clock), texts)
    assert len(sizes) > 3
    assert np.array_equal(slow, WindowVectors(WordBag()).of(texts))


def test_a_heading_is_embedded_once_for_the_windows_below_it(clock: Slow) -> None:
    portions(WindowVectors(clock), [(f"text {n}", f"heading {n // 50}") for n in range(150)])
    asked = [text for batch in clock.batches for text in batch if text.startswith("heading")]
    assert asked == ["heading 0", "heading 1", "heading 2"]


def test_progress_moves_within_a_step(tmp_path: Path, clock: Slow) -> None:
    """A step is written at once; it took so long beside an answer that the import looked dead."""
    library = Library(tmp_path / "library", clock)
    seen: list[IngestProgress] = []
    library.add(pdf_files.write_pdf(tmp_path / "a.pdf", pdf_files.book(60)), seen.append)
    library.close()
    done = [progress.done for progress in seen if progress.phase == "vectors"]
    assert done[:3] == [0, 64, 96]
    assert max(after - before for before, after in pairwise(done[5:])) <= 4
