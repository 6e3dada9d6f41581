"""Vectors behind imports: one job for all that waits, and one stop for all of it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.core.events import ImportProgress, IndexingEnded
from app.core.imports import Imports
from app.core.settings import Settings
from rag.errors import IntakeCancelled
from rag.types import DocumentId, IngestProgress

LONGEST_S = 60.0


class SlowLibrary:
    """Makes vectors until it is stopped or `finish` is set; each run says that it has begun."""

    def __init__(self) -> None:
        self.begun: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.runs = 0
        self.finish = threading.Event()

    def documents(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(embedded=False)]

    def embed_missing(self, report: Callable[[IngestProgress], None], cancelled: Callable[[], bool]) -> None:
        self.runs += 1
        report(IngestProgress(Path("book.pdf"), DocumentId(1), "vectors", 1, 9))
        self.begun.put(None)
        while not self.finish.wait(0.002):
            if cancelled():
                raise IntakeCancelled("book.pdf")


class Jobs:
    def __init__(self) -> None:
        self.library = SlowLibrary()
        self.events: queue.SimpleQueue[object] = queue.SimpleQueue()
        shelves = SimpleNamespace(library=lambda: self.library, embedder_present=True)
        self.imports = Imports(shelves, Settings, self.events.put)

    def begin(self) -> str:
        job = self.imports.make_vectors()
        assert job is not None
        self.library.begun.get(timeout=LONGEST_S)
        event = self.events.get(timeout=LONGEST_S)
        assert isinstance(event, ImportProgress)
        assert event.job == job
        return job

    def ended(self) -> IndexingEnded:
        event = self.events.get(timeout=LONGEST_S)
        assert isinstance(event, IndexingEnded)
        return event


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs()
    yield made
    made.imports.close(LONGEST_S)


def test_one_stop_is_for_everything_that_waits_and_is_told(jobs: Jobs) -> None:
    running = jobs.begin()
    waiting = {jobs.imports.make_vectors() for _ in range(5)}
    assert len(waiting) == 1
    jobs.imports.cancel(running)
    assert jobs.ended() == IndexingEnded(running, stopped=True)
    assert jobs.ended() == IndexingEnded(*waiting, stopped=True)
    assert jobs.library.runs == 1, "what waited did not begin"


def test_vectors_are_made_again_after_a_stop(jobs: Jobs) -> None:
    first = jobs.begin()
    jobs.imports.make_vectors()
    jobs.imports.cancel(first)
    assert {jobs.ended().stopped, jobs.ended().stopped} == {True}
    second = jobs.begin()
    jobs.library.finish.set()
    assert jobs.ended() == IndexingEnded(second, stopped=False)


def test_an_end_that_nobody_wanted_is_told_too(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(jobs.library, "embed_missing", broken)
    job = jobs.imports.make_vectors()
    seen = [jobs.events.get(timeout=LONGEST_S) for _ in range(2)]
    assert IndexingEnded(job, stopped=False) in seen
