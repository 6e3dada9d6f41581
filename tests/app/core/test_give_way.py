"""Vectors are made beside answers, but slowly."""

import time
from pathlib import Path

import pytest

from app.core import imports
from app.core.embedding import Shelves
from app.core.jobs import Job
from app.core.settings import Settings


def giving_way(folder: Path, answering: bool) -> imports.Imports:
    shelves = Shelves(folder, folder, wait_for_vectors=False)
    return imports.Imports(shelves, Settings, lambda event: None, answering=lambda: answering)


def seconds(made: imports.Imports, job: Job) -> float:
    started = time.monotonic()
    made._yield(job)
    return time.monotonic() - started


def test_a_batch_waits_while_answers_are_written_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "GIVE_WAY_SECONDS", 0.3)
    job = Job(lambda job: None)
    assert seconds(giving_way(tmp_path, answering=True), job) >= 0.3
    assert seconds(giving_way(tmp_path, answering=False), job) < 0.2
    job.stopped.set()
    assert giving_way(tmp_path, answering=True)._yield(job)
