"""A PDF for viewing: pages are rendered on a thread of Qt's, everything else waits until that thread rests.

PDFium takes one lock for all documents, so a question about geometry asked while a page is rendered would
stop the main thread for as long as the rendering takes. Questions therefore queue and run between renderings.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QElapsedTimer, QObject, QRectF, QSize, QSizeF, QTimer, Signal
from PySide6.QtGui import QImage
from PySide6.QtPdf import QPdfDocument, QPdfDocumentRenderOptions, QPdfPageRenderer, QPdfSearchModel

from app.core.errors import UserError

SLICE_MS = 12
SIZES_AT_ONCE = 16


class PdfFile(QObject):
    """One open document.

    Signals:
        rendered: page index and QImage of a wished page.
        sizes_known: page sizes in points (list of QSizeF) became exact; until then all are like the first.
    """

    rendered = Signal(int, QImage)
    sizes_known = Signal()

    def __init__(self, path: Path, parent: QObject | None = None, name: str = "") -> None:
        """`name`: the reader's own for it. Raises UserError when the file is gone or no PDF."""
        super().__init__(parent)
        self._renderer = QPdfPageRenderer(self)  # before the document: its thread ends before that goes
        self.document = QPdfDocument(self)
        error = self.document.load(str(path))
        if error is not QPdfDocument.Error.None_:
            raise UserError(
                f"“{name or path.name}” cannot be shown.",
                f"{_reason(error)} ({path}).",
                "Add the PDF again: what was read of it, conversations and citations stay.",
            )
        self.pages = self.document.pageCount()
        first = self.document.pagePointSize(0) if self.pages else QSizeF()
        self.sizes: list[QSizeF] = [first] * self.pages
        self._renderer.setRenderMode(QPdfPageRenderer.RenderMode.MultiThreaded)
        self._renderer.setDocument(self.document)
        self._renderer.pageRendered.connect(self._rendered)
        self._wishes: list[tuple[int, QSize]] = []
        self._busy = False
        self._questions: deque[Callable[[], object]] = deque()
        self._turn = QTimer(self, singleShot=True, interval=0)
        self._turn.timeout.connect(self._next)
        self._search: QPdfSearchModel | None = None
        for start in range(0, self.pages, SIZES_AT_ONCE):
            self.ask(lambda start=start: self._measure(start))

    def wish(self, pages: Sequence[tuple[int, QSize]]) -> None:
        """Renders these pages at these pixel sizes, in order; replaces what was wished before."""
        self._wishes = list(pages)
        self._turn.start()

    def ask(self, question: Callable[[], object]) -> None:
        """Runs `question` on this thread when no page is being rendered."""
        self._questions.append(question)
        self._turn.start()

    def label(self, page: int) -> str:
        """Printed label; the file's page number where it has none."""
        return self.document.pageLabel(page) or str(page + 1)

    def page_of_label(self, label: str) -> int | None:
        """The page with this printed label, else with this number in the file."""
        page = self.document.pageIndexForLabel(label)
        if page < 0 and label.isdigit():
            page = int(label) - 1
        return page if 0 <= page < self.pages else None

    def rectangles(self, page: int, start: int, count: int) -> list[QRectF]:
        """Where characters stand, line by line, in points from the page's top left corner."""
        selection = self.document.getSelectionAtIndex(page, start, count)
        if not selection.isValid() and count > 1:
            selection = self.document.getSelectionAtIndex(page, start + 1, count - 1)
        return lines([polygon.boundingRect() for polygon in selection.bounds()])

    @property
    def search(self) -> QPdfSearchModel:
        if self._search is None:
            self._search = QPdfSearchModel(self)
            self._search.setDocument(self.document)
        return self._search

    def close(self) -> None:
        self._wishes, self._busy = [], True
        self._questions.clear()
        self.deleteLater()

    def _measure(self, start: int) -> None:
        end = min(start + SIZES_AT_ONCE, self.pages)
        for page in range(start, end):
            self.sizes[page] = self.document.pagePointSize(page)
        if end == self.pages:
            self.sizes_known.emit()

    def _next(self) -> None:
        if self._busy:
            return
        clock = QElapsedTimer()
        clock.start()
        while self._questions and clock.elapsed() < SLICE_MS:
            self._questions.popleft()()
        if self._wishes:
            page, size = self._wishes.pop(0)
            self._busy = True
            self._renderer.requestPage(page, size, QPdfDocumentRenderOptions())
        elif self._questions:
            self._turn.start()

    def _rendered(self, page: int, size: QSize, image: QImage) -> None:
        self._busy = False
        self._turn.start()
        self.rendered.emit(page, image)


def lines(boxes: Sequence[QRectF]) -> list[QRectF]:
    """Boxes of characters or words joined to one box per line, in the order given."""
    joined: list[QRectF] = []
    for box in boxes:
        if box.width() <= 0 and box.height() <= 0:
            continue
        if joined and _same_line(joined[-1], box):
            joined[-1] = joined[-1].united(box)
        else:
            joined.append(QRectF(box))
    return joined


def _same_line(line: QRectF, box: QRectF) -> bool:
    overlap = min(line.bottom(), box.bottom()) - max(line.top(), box.top())
    near = box.left() - line.right() < 3 * max(line.height(), box.height()) and box.right() > line.left()
    return overlap > 0.3 * min(line.height(), box.height()) and near


def _reason(error: QPdfDocument.Error) -> str:
    return {
        QPdfDocument.Error.FileNotFound: "Pagekeep's copy of it is gone",
        QPdfDocument.Error.InvalidFileFormat: "The file is no PDF, or damaged",
        QPdfDocument.Error.IncorrectPassword: "The file is protected by a password",
    }.get(error, "The file cannot be read")
