"""Vectors of windows: portions that fit the time there is, and progress in between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rag import IngestProgress, Library, window_vectors
from rag.protocols import Vectors
from rag.window_vectors import LEAST_PORTION, Portions, WindowVectors
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
    assert portions(maker, texts[:18])[0] == [5, 5, 5, 3], "the last is what was left"
    clock.seconds = 0.001
    assert portions(maker, texts[:60])[0] == [5, 10, 16, 16, 13]
    clock.seconds = 0.1
    assert portions(maker, texts[:31])[0] == [16, 5, 5, 5], "one is long where the machine gets busy, no more"


def test_few_texts_do_not_make_portions_larger(clock: Slow) -> None:
    """Of short documents, one after another: they tell nothing of how long many texts take."""
    clock.seconds = 0.001
    shared = Portions()
    for _ in range(8):
        assert portions(WindowVectors(clock, shared), [("text", "")] * 3)[0] == [3]
    assert shared.size == LEAST_PORTION


def test_a_document_begins_with_the_portion_that_the_one_before_ended_with(tmp_path: Path, clock: Slow) -> None:
    library = Library(tmp_path / "library", clock)
    seen: list[IngestProgress] = []
    clock.seconds = 0.04
    for seed in (1, 2):
        library.add(pdf_files.write_pdf(tmp_path / f"{seed}.pdf", pdf_files.book(60, seed)), seen.append)
    library.close()
    first, second = (
        [p.done for p in seen if p.phase == "vectors" and p.document_id == document]
        for document in sorted({p.document_id for p in seen if p.document_id is not None})
    )
    assert first[1] == LEAST_PORTION, "nothing is known yet of the machine"
    assert LEAST_PORTION < second[1] <= 2 * LEAST_PORTION
    assert second[1] == max(after - before for before, after in pairwise(first))


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
    assert done[:3] == [0, 5, 10]
    assert max(after - before for before, after in pairwise(done)) == 5
