"""Words in the open document: the page on the screen is searched first, then those behind it, then those before.

The model of QtPdf looks at ten pages a second by itself; it is asked for page after page here, whenever no page is
being drawn. Its rows are left alone: to tell one it first searches every page before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

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
        self._words = ""
        self._search = 0  # which one runs
        self._first = 0
        self._left: deque[int] = deque()  # pages that were not searched yet
        self._reveals = False  # the first that is found is shown
        self._counts: list[int] = []  # found on each page so far
        self._at: tuple[int, int] | None = None  # the page of the one that is shown, and which on it
        toolbar.search_for.connect(self.search)
        toolbar.next_found.connect(self.step)

    def search(self, words: str) -> None:
        self._words = words
        self._begin(reveals=True)

    def search_again(self) -> None:
        """In a document that was just opened, for the words that stand there; the page that it was opened at stays."""
        if self._words:
            self._begin(reveals=False)

    def reset(self) -> None:
        """Ends the search; the words stay."""
        self._view.show_found({})
        self._view.forget_others()
        self._at, self._counts, self._search = None, [], self._search + 1
        self._left.clear()
        self._toolbar.show_no_search()

    def step(self, direction: int) -> None:
        """From the one that is shown; where none is, from the page on the screen."""
        if (file := self._file()) is None or not any(self._counts):
            return
        self._reveals = False
        row = self._row(*self._at) if self._at else self._row(self._view.page, 0) - (direction > 0)
        self._show(file, *self._place((row + direction) % sum(self._counts)))

    def _begin(self, *, reveals: bool) -> None:
        self.reset()
        if (file := self._file()) is None:
            return
        wanted = self._words if len(self._words) >= SHORTEST else ""
        file.search.setSearchString(wanted)
        self._first, self._reveals = self._view.page, reveals
        if wanted:
            self._counts = [0] * file.pages
            self._left.extend([*range(self._first, file.pages), *range(self._first)])
            self._go_on(file)

    def _go_on(self, file: PdfFile) -> None:
        if self._left:
            file.ask(partial(self._look, file, self._search))
        elif any(self._counts):
            self._show_first(file, *self._place(0))
        self._tell()

    def _look(self, file: PdfFile, search: int) -> None:
        if search == self._search:
            page = self._left.popleft()
            results = file.search.resultsOnPage(page)
            self._counts[page] = len(results)
            self._view.show_others(page, [box for result in results for box in result.rectangles()])
            if self._counts[page] and page >= self._first:
                self._show_first(file, page, 0)
            self._go_on(file)

    def _show_first(self, file: PdfFile, page: int, index: int) -> None:
        """Unless one was shown already or the reader went to another page meanwhile."""
        if self._reveals and self._view.page == self._first:
            self._show(file, page, index)
        self._reveals = False

    def _show(self, file: PdfFile, page: int, index: int) -> None:
        self._at = page, index
        boxes = list(file.search.resultsOnPage(page)[index].rectangles())
        self._view.show_found({page: boxes})
        if boxes:
            self._view.reveal(page, boxes[0])
        self._tell()

    def _tell(self) -> None:
        row = self._row(*self._at) if self._at else -1
        self._toolbar.show_found(row, sum(self._counts), bool(self._left))

    def _row(self, page: int, index: int) -> int:
        """Of all found so far, in the order of pages."""
        return sum(self._counts[:page]) + index

    def _place(self, row: int) -> tuple[int, int]:
        """Page, and which on it."""
        page = bisect_right(list(accumulate(self._counts)), row)
        return page, row - self._row(page, 0)
