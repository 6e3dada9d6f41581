"""What a citation marks in the reader is the ink of its characters, and no other."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pypdf
import pypdfium2
import pytest
from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QImage, QPainter
from pytestqt.qtbot import QtBot

from app.reader.pdf import PdfFile
from rag.pdf import worker
from rag.pdf.text import CharMap
from rag.pdf.text_layer import add_layer
from tests.rag.pdf_files import at, drawn_pdf

SCALE = 3  # pixels a point
EDGE = 1.0  # points by which ink may leave its box: half a stroke, blurred
LINES = [
    "The keeper of the tower lights",
    "the lamp when the sun goes down",
    "and writes it in a green book",
    "that lies upon the table until",
    "the boats come home in spring",
    "and nobody has ever seen him",
    "leave the place on a Sunday",
]
OTHERS = [
    "In winter the harbour is still",
    "for six weeks and the ice bears",
    "children skating between masts",
    "while old men mend fishing nets",
    "and merchants sell their lamps",
    "to the captains who go south",
    "before the first storm comes",
]

Draw = Callable[[bool], bytes]  # the file, with the cited words in black, or in white


def line(x: float, y: float, text: str, cited: str, visible: bool, matrix: str = "1 0 0 1") -> str:
    """A line of text whose cited part is black only when it is visible; its codes are the same."""
    if cited not in text:
        return at(x, y, text, matrix=matrix)
    before, after = text.split(cited, 1)
    color = "0 g" if visible else "1 g"
    return f"BT /F 10 Tf {matrix} {x} {y} Tm ({before}) Tj {color} ({cited}) Tj 0 g ({after}) Tj ET"


def part_of(text: str, cited: list[str]) -> str:
    return next((words for words in cited if words in text), "\0")


def column(cited: list[str], page: str = "", matrix: str = "1 0 0 1", start: tuple[int, int] = (80, 700)) -> Draw:
    """Lines one below the other, as the matrix turns them."""
    right, up = [int(n) for n in matrix.split()[2:]]

    def draw(visible: bool) -> bytes:
        places = [(start[0] - 14 * right * n, start[1] - 14 * up * n) for n in range(len(LINES))]
        parts = [
            line(x, y, text, part_of(text, cited), visible, matrix) for (x, y), text in zip(places, LINES, strict=True)
        ]
        return drawn_pdf(["\n".join(parts)], f"/MediaBox [0 0 600 800] {page}")

    return draw


def side_by_side(cited: list[str]) -> Draw:
    """Two columns that the file draws row by row."""

    def draw(visible: bool) -> bytes:
        rows = [(60, 700 - 14 * n, text) for n, text in enumerate(LINES)]
        rows += [(240, 700 - 14 * n, text) for n, text in enumerate(OTHERS)]
        rows.sort(key=lambda row: -row[1])
        return drawn_pdf(["\n".join(line(*row, part_of(row[2], cited), visible) for row in rows)])

    return draw


BOOK = "green book"
CASES: dict[str, tuple[Draw, str]] = {
    "plain": (column([BOOK]), BOOK),
    "two lines": (column(["sun goes down", "and writes"]), "sun goes down\nand writes"),
    "cropped": (column([BOOK], "/CropBox [50 300 400 760]"), BOOK),
    "away from the origin": (column([BOOK], "/CropBox [-100 -50 500 750] /MediaBox [-100 -50 500 750]"), BOOK),
    "turned by 90": (column([BOOK], "/Rotate 90"), BOOK),
    "turned by 180": (column([BOOK], "/Rotate 180"), BOOK),
    "turned by 270": (column([BOOK], "/Rotate 270"), BOOK),
    "turned and cropped": (column([BOOK], "/CropBox [50 300 400 760] /Rotate 90"), BOOK),
    "lying lines": (column([BOOK], "", "0 1 -1 0", (200, 100)), BOOK),
    "lying lines set upright": (column([BOOK], "/Rotate 90", "0 1 -1 0", (200, 100)), BOOK),
    "columns drawn row by row": (
        side_by_side(["the place on a Sunday", "In winter"]),
        "the place on a Sunday\nIn winter",
    ),
}


@pytest.fixture
def show(qtbot: QtBot, tmp_path: Path) -> Iterator[Callable[[bytes, str], PdfFile]]:
    opened: list[PdfFile] = []

    def show(data: bytes, name: str) -> PdfFile:
        path = tmp_path / f"{name}.pdf"
        path.write_bytes(data)
        opened.append(PdfFile(path))
        return opened[-1]

    yield show
    for file in opened:
        file.close()


def ink(file: PdfFile, page: int = 0) -> np.ndarray:
    """Darkness of the page's pixels, 0 to 255, [height, width]."""
    size = file.document.pagePointSize(page)
    image = file.document.render(page, QSize(round(size.width() * SCALE), round(size.height() * SCALE)))
    flat = QImage(image.size(), QImage.Format.Format_RGB32)
    flat.fill(0xFFFFFFFF)
    painter = QPainter(flat)
    painter.drawImage(0, 0, image)
    painter.end()
    grey = flat.convertToFormat(QImage.Format.Format_Grayscale8)
    rows = np.frombuffer(grey.constBits(), np.uint8).reshape(grey.height(), grey.bytesPerLine())
    return 255 - rows[:, : grey.width()].astype(int)


def ranges(data: bytes, words: str) -> list[tuple[int, int]]:
    """Where the intake says the words stand."""
    document = pypdfium2.PdfDocument(data)
    message = worker.page(document, 0)
    document.close()
    positions = CharMap(tuple(message["clean"]), tuple(message["raw"]))
    return positions.spans(message["text"].index(words), len(words))


def covered(boxes: list[QRectF], shape: tuple[int, ...], grown: float) -> np.ndarray:
    """True for pixels in the boxes, each made larger by `grown` points."""
    mask = np.zeros(shape, bool)
    for box in boxes:
        top, bottom = round((box.top() - grown) * SCALE), round((box.bottom() + grown) * SCALE)
        left, right = round((box.left() - grown) * SCALE), round((box.right() + grown) * SCALE)
        mask[max(0, top) : max(0, bottom), max(0, left) : max(0, right)] = True
    return mask


@pytest.mark.parametrize("case", CASES)
def test_marks_are_on_the_ink_of_the_cited_characters(case: str, show: Callable[[bytes, str], PdfFile]) -> None:
    draw, words = CASES[case]
    found = ranges(draw(True), words)
    file, without = show(draw(True), "with"), show(draw(False), "without")
    told = [file.document.getSelectionAtIndex(0, first, count).text() for first, count in found]
    assert " ".join(" ".join(told).split()) == " ".join(words.split())
    marks = [box for first, count in found for box in file.rectangles(0, first, count)]
    assert len(marks) == len(words.split("\n"))
    rest = ink(without)
    own = ink(file) - rest > 40
    assert own.sum() > 300
    assert not (own & ~covered(marks, own.shape, EDGE)).any()
    assert all((own & covered([mark], own.shape, EDGE)).sum() > 100 for mark in marks)
    assert not ((rest > 40) & covered(marks, own.shape, -EDGE)).any()


@pytest.mark.parametrize("turned", [0, 90])
def test_marks_are_on_the_ink_of_a_scan(turned: int, show: Callable[[bytes, str], PdfFile], tmp_path: Path) -> None:
    """The page is a picture; words were recognised on it and laid under it."""
    draw, words = CASES["plain"]
    document = pypdfium2.PdfDocument(draw(True))
    layer = [word for place in word_places(document[0]) for word in place]
    document.close()
    for name, visible in (("with", True), ("without", False)):
        document = pypdfium2.PdfDocument(draw(visible))
        picture = document[0].render(scale=SCALE).to_pil().convert("L")
        picture.save(tmp_path / f"{name}.pdf", "PDF", resolution=72 * SCALE)
        document.close()
        add_layer(str(tmp_path / f"{name}.pdf"), str(tmp_path / f"{name}-read.pdf"), {0: layer})
        writer = pypdf.PdfWriter(clone_from=tmp_path / f"{name}-read.pdf")
        writer.pages[0].rotate(turned)
        writer.write(tmp_path / f"{name}-read.pdf")
    data = (tmp_path / "with-read.pdf").read_bytes()
    file, without = show(data, "scan"), show((tmp_path / "without-read.pdf").read_bytes(), "rest")
    marks = [box for first, count in ranges(data, words) for box in file.rectangles(0, first, count)]
    rest = ink(without)
    own = ink(file) - rest > 60
    assert own.sum() > 300
    assert not (own & ~covered(marks, own.shape, 1.5)).any()
    assert not ((rest > 60) & covered(marks, own.shape, -1.5)).any()


def word_places(page: pypdfium2.PdfPage) -> Iterator[list[tuple[str, float, float, float, float, float, float]]]:
    """The lines' words with their boxes, as the recogniser gives them."""
    textpage = page.get_textpage()
    text = textpage.get_text_range()
    for row in re.finditer(r"[^\r\n]+", text):
        words = list(re.finditer(r"\S+", row[0]))
        boxes = [[textpage.get_charbox(row.start() + n) for n in range(*word.span())] for word in words]
        bottom, top = min(b[1] for box in boxes for b in box), max(b[3] for box in boxes for b in box)
        yield [
            (
                word[0] + ("\n" if word is words[-1] else ""),
                box[0][0],
                bottom,
                box[-1][2] - box[0][0],
                0,
                0,
                top - bottom,
            )
            for word, box in zip(words, boxes, strict=True)
        ]
    textpage.close()


FOLDER = Path(os.environ.get("PAGEKEEP_CORPUS", ""))
MORE = ("made-enc-owner-only.pdf", "made-mixed-text-scan.pdf", "made-rotated.pdf", "pari-refcard.pdf", "pari-users.pdf")
FILES = sorted([*FOLDER.glob("[a-l]*.pdf"), *map(FOLDER.joinpath, MORE)]) if os.environ.get("PAGEKEEP_CORPUS") else []


@pytest.mark.skipif(not FILES, reason="PAGEKEEP_CORPUS is not set")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_files_are_marked_where_pdfium_has_the_characters(path: Path, qtbot: QtBot) -> None:
    """Over all kinds of real files: the same characters at the same places, and each mark lies on ink of the page that
    QtPdf draws; it has a PDFium of its own."""
    document, file = pypdfium2.PdfDocument(path), PdfFile(path)
    compared = same = inked = 0
    for index in range(2, len(document), max(1, len(document) // 8)):
        message = worker.page(document, index)
        positions = CharMap(tuple(message["clean"]), tuple(message["raw"]))
        page = document[index]
        textpage = page.get_textpage()
        drawn = ink(file, index)
        for match in list(re.finditer(r"\S[^\n]{10,30}\S", message["text"]))[::9]:
            for first, count in positions.spans(match.start(), len(match[0])):
                told = file.document.getSelectionAtIndex(index, first, count).text()
                marks = file.rectangles(index, first, count)
                compared += 1
                inked += on_ink(marks, drawn)
                alike = page.get_rotation() or placed_alike(marks, textpage, first, count, page)
                same += bool(alike) and bare(told) == bare(textpage.get_text_range(first, count))
        textpage.close()
    document.close()
    file.close()
    assert compared > 5
    assert same >= 0.97 * compared
    assert inked >= 0.97 * compared


def on_ink(marks: list[QRectF], drawn: np.ndarray) -> bool:
    """What is drawn in each mark differs from its ground."""
    parts = [drawn[covered([mark], drawn.shape, 0)] for mark in marks]
    return all(part.size and part.max() - part.min() > 40 for part in parts)


def bare(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def placed_alike(
    marks: list[QRectF], textpage: pypdfium2.PdfTextPage, first: int, count: int, page: pypdfium2.PdfPage
) -> bool:
    """The rectangles' outline is that of the visible characters, to 2 points."""
    boxes = [textpage.get_charbox(n) for n in range(first, first + count)]
    shown = [box for box in boxes if box[2] > box[0] and box[3] > box[1]]
    if not shown:
        return not marks
    left, _, _, top = page.get_bbox()
    there = (
        min(b[0] for b in shown) - left,
        top - max(b[3] for b in shown),
        max(b[2] for b in shown) - left,
        top - min(b[1] for b in shown),
    )
    here = (
        min(m.left() for m in marks),
        min(m.top() for m in marks),
        max(m.right() for m in marks),
        max(m.bottom() for m in marks),
    )
    return all(abs(one - other) <= 2 for one, other in zip(here, there, strict=True))
