"""Hebrew and Arabic as Qt draws them with a real font: read in logical order, and marked where they stand."""

from pathlib import Path

import pypdfium2
import pytest
from PySide6.QtGui import QFont, QFontInfo, QFontMetricsF, QPdfWriter
from pytestqt.qtbot import QtBot

from app.reader.pdf import PdfFile
from rag.pdf import worker
from rag.pdf.text import CharMap
from tests.app.gui.pdf_files import write_pdf

HEBREW = [
    "שומר המגדל מדליק את המנורה בערב.",
    "הוא כותב הכול בספר ירוק, בעמוד 42.",
    "המודול StoreFusion נטען ב-3.5 שניות (בערך).",
    'מחיר: 1,250 ש"ח לשנת 2019–2020',
    "הקובץ readme.txt (ראו StoreFusion), או ב-PDF!",
    "(42) ועוד [ראו 7]; 15%, -5 מעלות",
    "כ-300 איש ב-New York.",
    "עמודים 12–15, 20.",
]
POINTS = 72 / 96  # a unit of `write_pdf`
NEAR = 2.5  # points, that letters may be narrower than their room
POINTED = ["שָׁלוֹם עוֹלָם", "בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם"]
ARABIC = [
    "المكتبة الكبيرة مفتوحة من 9 إلى 17",
    'قال: "نعم" في 3.5% (تقريبا) عام 1990.',
    "الملف readme.txt لا يفتح.",
]


@pytest.fixture(autouse=True)
def font(qtbot: QtBot) -> None:
    if QFontInfo(QFont("DejaVu Sans", 10)).family() != "DejaVu Sans":
        pytest.skip("DejaVu Sans is not there")


@pytest.mark.parametrize(
    "lines", [HEBREW, POINTED, ARABIC, HEBREW[1:2], HEBREW[:2]], ids=["hebrew", "pointed", "arabic", "one", "two"]
)
def test_lines_are_read_in_logical_order(lines: list[str], tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "page.pdf", [lines])
    with pypdfium2.PdfDocument(path) as document:
        message = worker.page(document, 0)
        textpage = document[0].get_textpage()
        raw = [textpage.get_text_range(n, 1) for n in range(textpage.count_chars())]
    assert message["text"].split("\n") == lines
    assert message["kind"] == "text"
    positions = CharMap(tuple(message["clean"]), tuple(message["raw"]))
    letters = [n for n, letter in enumerate(message["text"]) if letter.isalnum()]
    assert [raw[positions.index(n)] for n in letters] == [message["text"][n] for n in letters]


def test_lines_of_both_directions_on_a_page_of_the_other_kind(tmp_path: Path) -> None:
    lines = ["English first, then עברית and more", *HEBREW[:3], "All in English here"]
    path = write_pdf(tmp_path / "page.pdf", [lines])
    with pypdfium2.PdfDocument(path) as document:
        assert worker.page(document, 0)["text"].split("\n") == lines


@pytest.mark.parametrize("cited", ["ספר ירוק", "בעמוד 42", "StoreFusion", "ב-3.5 שניות"])
def test_the_mark_is_where_the_words_are_drawn(cited: str, tmp_path: Path, qtbot: QtBot) -> None:
    row = next(number for number, line in enumerate(HEBREW) if cited in line)
    path = write_pdf(tmp_path / "page.pdf", [HEBREW])
    with pypdfium2.PdfDocument(path) as document:
        message = worker.page(document, 0)
    positions = CharMap(tuple(message["clean"]), tuple(message["raw"]))
    file = PdfFile(path)
    spans = positions.spans(message["text"].index(cited), len(cited))
    marks = [box for first, count in spans for box in file.rectangles(0, first, count)]
    file.close()
    left, right = min(box.left() for box in marks), max(box.right() for box in marks)
    writer = QPdfWriter(str(tmp_path / "measure.pdf"))
    writer.setResolution(96)
    metrics = QFontMetricsF(QFont("DejaVu Sans", 10), writer)
    before = metrics.horizontalAdvance(HEBREW[row][: HEBREW[row].index(cited)])
    whole, width = metrics.horizontalAdvance(HEBREW[row]), metrics.horizontalAdvance(cited)
    margin = QPdfWriter(str(tmp_path / "margin.pdf")).pageLayout().marginsPoints().left()
    end = margin + (30 + whole - before) * POINTS
    assert abs(right - end) < NEAR
    assert abs(left - (end - width * POINTS)) < NEAR
