"""The way through tesseract: its output format, and the real program where the system has it."""

import os
from pathlib import Path

import numpy as np
import pypdfium2
import pytest

from rag.pdf import tesseract
from rag.pdf.recognise_worker import words
from tests.rag import pdf_files

COLUMNS = "level page_num block_num par_num line_num word_num left top width height conf text"
ROWS = [
    "1 1 0 0 0 0 0 0 300 200 -1 ",
    "5 1 1 1 1 1 30 40 50 12 96.1 green",
    '5 1 1 1 1 2 90 40 44 12 95.0 "book',
    "5 1 1 1 1 3 140 40 9 12 3.5 ~~",
    "5 1 1 1 2 1 30 60 70 12 91.0 spring",
]


def test_words_come_line_by_line_with_their_corners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that answers as tesseract does."""
    table = "\n".join([COLUMNS.replace(" ", "\t"), *(row.replace(" ", "\t", 11) for row in ROWS)])
    program = tmp_path / "tesseract"
    (tmp_path / "table").write_text(table)
    program.write_text(f'#!/bin/sh\n[ "$1" = --list-langs ] && echo all && echo eng && exit\ncat {tmp_path}/table\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = tesseract.lines(np.full((200, 300), 255, np.uint8))
    assert [[text for text, _ in line] for line in found] == [["green", '"book'], ["spring"]]
    assert found[0][1][1] == [[90, 40], [134, 40], [134, 52], [90, 52]]


@pytest.mark.skipif(not tesseract.available(), reason="the system has no tesseract")
def test_a_page_is_read() -> None:
    document = pypdfium2.PdfDocument(pdf_files.pdf_bytes([["A lost lantern costs 12 euros.", "Nobody pays."]]))
    grey = lambda picture: tesseract.lines(np.ascontiguousarray(picture.mean(2).astype(np.uint8)))  # noqa: E731
    found = words(document[0], grey)
    assert "".join(word[0] if word[0].endswith("\n") else word[0] + " " for word in found).split() == (
        ["A", "lost", "lantern", "costs", "12", "euros.", "Nobody", "pays."]
    )
    place = next(word for word in found if word[0] == "lantern")
    textpage = document[0].get_textpage()
    first = textpage.get_charbox(textpage.get_text_range().index("lantern"))
    assert place[1:3] == pytest.approx(first[:2], abs=2)
