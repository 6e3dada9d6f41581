"""Documents read anew at the reader's wish."""

from __future__ import annotations

from assets import sample_pdf
from tests.app.cli.conftest import CommandLine


def test_named_documents_are_read_anew_and_stay_as_they_are(pagekeep: CommandLine) -> None:
    pagekeep("index", "add", "--words-only", sample_pdf())
    told = pagekeep("index", "again", "pagekeep-sample.pdf")
    assert (told.status, told.out) == (0, "They come out as they are.\n")
    assert pagekeep("index", "again").out == "All documents are up to date.\n"
    report = pagekeep("index", "report", "pagekeep-sample.pdf").out.splitlines()
    assert report[1].startswith("    title “"), "what the file says of itself"


def test_an_unknown_name_is_told(pagekeep: CommandLine) -> None:
    assert pagekeep("index", "again", "nothing.pdf", "--json").error["what"] == ("This document is not in the library.")
