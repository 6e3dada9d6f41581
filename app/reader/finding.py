"""Words in the open document: the page on the screen is searched first, then those behind it, then those before.

The model of QtPdf looks at ten pages a second by itself; it is asked for page after page here, whenever no page is
being drawn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex

from app.reader.page_view import PageView
from app.reader.toolbar import ReaderToolbar

if TYPE_CHECKING:
    from app.reader.pdf import PdfFile

SHORTEST = 2  # characters; one alone is on every page


class Finding(QObject):
    """Marks what is found and steps through it. `file`: the open one."""

    def __init__(self, view: PageView, toolbar: ReaderToolbar, file: Callable[[], PdfFile | None]) -> None:
        super().__init__(view)
        self._view, self._toolbar, self._file = view, toolbar, file
        self._search = 0  # which one runs
        self._first = 0
        self._left: deque[int] = deque()  # pages that were not searched yet
        self._at = QPersistentModelIndex()  # stays with its place while more are found before it
        toolbar.search_for.connect(self.search)
        toolbar.next_found.connect(self.step)

    def search(self, words: str) -> None:
        self._view.show_found({})
        self._at, self._search = QPersistentModelIndex(), self._search + 1
        if (file := self._file()) is None:
            return
        wanted = words if len(words) >= SHORTEST else ""
        file.search.setSearchString(wanted)
        self._first = self._view.page
        self._left = deque([*range(self._first, file.pages), *range(self._first)] if wanted else ())
        if wanted:
            self._go_on(file)
        else:
            self._toolbar.show_no_search()

    def step(self, direction: int) -> None:
        if (file := self._file()) is not None and (total := self._total(file)):
            self._show(file, (self._at.row() + direction) % total)

    def _go_on(self, file: PdfFile) -> None:
        self._tell(file)
        if self._left:
            file.ask(partial(self._look, file, self._search))

    def _look(self, file: PdfFile, search: int) -> None:
        if search == self._search and file is self._file() and self._left:
            file.search.resultsOnPage(self._left.popleft())
            self._go_on(file)

    def _tell(self, file: PdfFile) -> None:
        if not self._at.isValid() and (row := self._nearest(file)) is not None:
            self._show(file, row)
        else:
            self._toolbar.show_found(self._at.row(), self._total(file), bool(self._left))

    def _nearest(self, file: PdfFile) -> int | None:
        """The first from the page on that was on the screen; one before it only where there is none."""
        rows = range(self._total(file))
        behind = (row for row in rows if file.search.resultAtIndex(row).page() >= self._first)
        return next(behind, 0 if rows and not self._left else None)

    def _show(self, file: PdfFile, row: int) -> None:
        self._at = QPersistentModelIndex(file.search.index(row, 0))
        found = file.search.resultAtIndex(row)
        boxes = list(found.rectangles())
        self._view.show_found({found.page(): boxes})
        if boxes:
            self._view.reveal(found.page(), boxes[0])
        self._toolbar.show_found(row, self._total(file), bool(self._left))

    def _total(self, file: PdfFile) -> int:
        return file.search.rowCount(QModelIndex())
