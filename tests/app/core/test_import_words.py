"""How far an import is, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.import_words import import_words
from rag.types import IngestPhase, IngestProgress


@pytest.mark.parametrize(
    ("phase", "done", "total", "words"),
    [
        ("copy", 894_395, 17_017_230, "copying: 894 kB of 17.0 MB"),
        ("text", 312, 1158, "reading text: 312 of 1,158 pages"),
        ("recognise", 2, 40, "reading scans: 2 of 40 pages"),
        ("words", 50, 200, "indexing words: 25%"),
        ("vectors", 64, 640, "indexing meaning: 64 of 640 passages"),
        ("text", 0, 0, "reading text"),
        ("done", 9, 9, "finishing"),
    ],
)
def test_progress_names_its_unit(phase: IngestPhase, done: int, total: int, words: str) -> None:
    assert import_words(IngestProgress(Path("a.pdf"), None, phase, done, total)) == words


def test_before_the_first_progress_it_waits() -> None:
    assert import_words(None) == "waiting"
