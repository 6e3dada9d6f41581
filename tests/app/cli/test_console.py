"""What is printed where: progress only on a terminal and never into results."""

from __future__ import annotations

import io

from app.cli.console import Console


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
