"""Lines about vectors for readers without a terminal."""

import io
from pathlib import Path

from app.cli.console import Console
from app.cli.vector_lines import VectorLines
from rag.types import DocumentId, IngestProgress


def test_it_is_said_that_they_begin_how_many_and_how_long_they_take() -> None:
    told, now, drawn = io.StringIO(), [100.0], []
    lines = VectorLines(Console(False, io.StringIO(), told), 1000, 2, drawn.append, lambda: now[0])
    for seconds, document, done in ((0, 1, 100), (2, 1, 150), (5, 1, 300), (30, 1, 500), (70, 2, 200)):
        now[0] = 100.0 + seconds
        lines(IngestProgress(Path("a.pdf"), DocumentId(document), "vectors", done, 600))
    begun, first, later = told.getvalue().splitlines()
    assert begun.startswith("Making vectors, to find by meaning too: 1,000 passages of 2 documents.")
    assert "Ctrl-C loses nothing" in begun
    assert first == "  200 of 1,000 passages, about 20 s left"
    assert later == "  400 of 1,000 passages, about 2 min left"
    assert len(drawn) == 5


def test_other_work_is_only_drawn() -> None:
    told, drawn = io.StringIO(), []
    lines = VectorLines(Console(False, io.StringIO(), told), 10, 1, drawn.append)
    lines(IngestProgress(Path("a.pdf"), DocumentId(1), "words", 3, 9))
    assert (told.getvalue(), len(drawn)) == ("", 1)
