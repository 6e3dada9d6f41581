"""`pagekeep index ocr`: which pages are read; nothing to read, nothing to read with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.commands import run
from rag.recognise import available
from tests.rag import pdf_files
from tests.rag.test_recognise import LINES, needs_recogniser, scan


@pytest.fixture
def ocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The JSON of a run on `file`."""
    monkeypatch.setenv("PAGEKEEP_HOME", str(tmp_path / "home"))

    def call(file: Path, *more: str) -> Any:
        run(["index", "ocr", str(file), *more, "--json"])
        return json.loads(capsys.readouterr().out)

    return call


def test_pages_that_can_be_read_already_and_pages_that_are_not_there(ocr: Any, tmp_path: Path) -> None:
    text = pdf_files.write_pdf(tmp_path / "text.pdf", [LINES] * 3)
    error = ocr(text, "--pages", "1-2,3")["error"]
    assert (error["what"], error["why"]) == (
        "There is nothing to recognise.", "Pages 1–3 of text.pdf can be read already."
    )  # fmt: skip
    assert "1 to 3" in ocr(text, "--pages", "9")["error"]["why"]


@needs_recogniser
def test_only_the_chosen_pages_are_read(ocr: Any, tmp_path: Path) -> None:
    (document,) = ocr(scan(tmp_path / "scan.pdf", 3), "--pages", "1,3")["documents"]
    assert document["unreadable_pages"] == [1]


@pytest.mark.skipif(available(), reason="the extra 'ocr' is installed")
def test_what_to_install(ocr: Any, tmp_path: Path) -> None:
    assert "pagekeep[ocr]" in ocr(scan(tmp_path / "scan.pdf", 1), "--pages", "1")["error"]["next"]
