"""What is printed where: progress only on a terminal and never into results."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app.cli.console import Console
from app.cli.session import import_words
from rag.types import IngestPhase, IngestProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_drawn_on_a_terminal_and_taken_away_again() -> None:
    console = Console(as_json=False, out=io.StringIO(), err=Terminal())
    console.progress("Checking: 3 of 9 records")
    console.clear()
    assert console.err.getvalue() == "\rChecking: 3 of 9 records" + "\r" + " " * 24 + "\r"  # type: ignore[attr-defined]
    assert console.out.getvalue() == ""  # type: ignore[attr-defined]


def test_a_file_or_pipe_gets_no_progress() -> None:
    console = Console(as_json=False, out=io.StringIO(), err=io.StringIO())
    console.progress("Checking: 3 of 9 records")
    console.note("Done.")
    assert console.err.getvalue() == "Done.\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("phase", "done", "total", "words"),
    [
        ("copy", 894_395, 17_017_230, "copying: 894 kB of 17.0 MB"),
        ("text", 312, 1158, "reading text: page 312 of 1,158"),
        ("recognise", 2, 40, "reading scans: page 2 of 40"),
        ("words", 50, 200, "indexing words: 25%"),
        ("vectors", 64, 640, "indexing meaning: passage 64 of 640"),
    ],
)
def test_progress_names_its_unit(phase: IngestPhase, done: int, total: int, words: str) -> None:
    assert import_words(IngestProgress(Path("a.pdf"), None, phase, done, total)) == words
