"""The Reader tab: one document at a time, opened from the library or at a citation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QMargins, QRectF, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.core.errors import UserError, as_user_error
from app.core.lookups import Scope, StoredRange
from app.reader.finding import Finding
from app.reader.outline import OutlineView
from app.reader.page_view import PageView, Place
from app.reader.selecting import Selecting
from app.reader.toolbar import ReaderToolbar
from app.services import Services
from app.widgets.cards import EmptyState, ErrorCard

if TYPE_CHECKING:
    from app.reader.pdf import PdfFile
    from rag import Document, Outline

HISTORY = 50


@dataclass(frozen=True)
class Visit:
    document: int
    place: Place


class ReaderPanel(QWidget):
    """Signals: shown (a document came into view; argument: its id), about (a selection is asked about; Scope)."""

    shown = Signal(int)
    about = Signal(object)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._file: PdfFile | None = None
        self._document: Document | None = None
        self._wanted: tuple[int, Place | None, tuple[StoredRange, ...]] | None = None
        self._back: list[Visit] = []
        self._forward: list[Visit] = []
        self._places: dict[int, Place] = {}  # where each document was left
        self.view = PageView(services.theme)
        self.selecting = Selecting(self.view, lambda: self._file)
        self.toolbar = ReaderToolbar(services.theme)
        self.finding = Finding(self.view, self.toolbar, lambda: self._file)
        self.outline = OutlineView()
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._show_history()

    # --- opening ----------------------------------------------------------------------------------
    def open(self, document: int, place: Place | None = None, ranges: Sequence[StoredRange] = ()) -> None:
        """Shows a page, or the first of `ranges` with all of them highlighted."""
        self._remember()
        self._wanted = (document, place, tuple(ranges))
        if self._document is not None and self._document.id == document and self._file is not None:
            self._go_to_wanted()
        else:
            library = self._services.workspace
            self._services.tasks.read(lambda: library.library.document(document), self._opened, self._failed)

    def current(self) -> Visit | None:
        return None if self._document is None else Visit(self._document.id, self.view.place())

    def wanted(self) -> int | None:
        """The document that is shown or about to be."""
        if self._wanted is not None:
            return self._wanted[0]
        return None if self._document is None else self._document.id

    def taken_in(self, document: Document) -> None:
        """It was added, perhaps again because its file was gone: what could not be shown is tried once more."""
        if self._file is None and self._wanted is not None and self._wanted[0] == document.id:
            self.open(*self._wanted)

    def close_document(self, document: int) -> None:
        """The document left the library."""
        if self.wanted() == document:
            self._wanted = None
        if self._document is not None and self._document.id == document:
            self._drop_file()
            self._stack.setCurrentIndex(0)

    def _opened(self, document: Document) -> None:
        from app.reader.pdf import PdfFile

        if self._wanted is None or self._wanted[0] != document.id:
            return
        try:
            file = PdfFile(document.path, self, document.name)
        except UserError as error:
            self._failed(error)
            return
        self._drop_file()
        self._file, self._document = file, document
        if self._wanted[1] is None and not self._wanted[2]:
            self._wanted = (document.id, self._places.get(document.id), ())
        self.toolbar.show_name(document.name)
        self._stack.setCurrentIndex(1)
        self.view.show_file(file)
        file.sizes_known.connect(self._sizes_known)
        library = self._services.workspace
        self.outline.entries.show_entries(())
        self._services.tasks.read(lambda: library.library.outline(document.id), self._show_outline)
        self._go_to_wanted()
        self.finding.search_again()
        self.shown.emit(document.id)

    def _drop_file(self) -> None:
        if self._document is not None and self._file is not None:
            self._places[self._document.id] = self.view.place()
        self.selecting.clear()
        self.finding.reset()
        self.view.show_file(None)
        if self._file is not None:
            self._file.close()
        self._file, self._document = None, None

    def _failed(self, error: Exception) -> None:
        self._drop_file()
        holder = QWidget()
        layout = QVBoxLayout(holder)
        layout.addWidget(ErrorCard(self._services.theme, as_user_error(error)), 0, Qt.AlignmentFlag.AlignTop)
        if self._stack.count() > 2:
            self._stack.removeWidget(self._stack.widget(2))
        self._stack.addWidget(holder)
        self._stack.setCurrentIndex(2)

    def _show_outline(self, entries: Sequence[Outline]) -> None:
        self.outline.entries.show_entries(entries)
        self.toolbar.outline.setEnabled(bool(entries))
        self.outline.setVisible(bool(entries) and self.toolbar.outline.isChecked())
        self.outline.show_page(self.view.page)

    # --- going places -----------------------------------------------------------------------------
    def _go_to_wanted(self) -> None:
        if self._wanted is None:
            return
        _, place, ranges = self._wanted
        self.view.show_marks({})
        if ranges:
            self.view.go(Place(ranges[0].page_index))
            self._mark(ranges)
        elif place is not None:
            self.view.go(place)
        self._page_changed(self.view.page)

    def _sizes_known(self) -> None:
        """Pages before the wanted one may be taller or shorter than was assumed."""
        if self._wanted is not None and (self._wanted[1] is not None or self._wanted[2]):
            self._go_to_wanted()

    def _mark(self, ranges: Sequence[StoredRange]) -> None:
        marks: dict[int, list[QRectF]] = {}
        file = self._file

        def measure(one: StoredRange, is_first: bool) -> None:
            if file is not self._file or file is None:
                return
            boxes = file.rectangles(one.page_index, one.char_start, one.char_count)
            marks.setdefault(one.page_index, []).extend(boxes)
            self.view.show_marks(dict(marks))
            if is_first and boxes:
                self.view.reveal(one.page_index, boxes[0])

        for number, one in enumerate(ranges):
            if file is not None and 0 <= one.page_index < file.pages:
                file.ask(lambda one=one, number=number: measure(one, number == 0))

    def _go_to_page(self, page: int) -> None:
        self._remember()
        self._wanted = None
        self.view.go(Place(page))
        self.view.setFocus()

    def _page_entered(self, text: str) -> None:
        page = self._file.page_of_label(text) if self._file is not None else None
        if page is None:
            self._services.toasts.say(f"There is no page “{text}” in this document.")
        else:
            self._go_to_page(page)

    def _page_changed(self, page: int) -> None:
        if self._file is not None:
            self.toolbar.show_page(self._file.label(page), page, self._file.pages)
            if self.outline.isVisible():
                self.outline.show_page(page)

    # --- back and forward -------------------------------------------------------------------------
    def _remember(self) -> None:
        here = self.current()
        if here is not None and (not self._back or self._back[-1] != here):
            self._back = [*self._back[-HISTORY:], here]
            self._forward.clear()
            self._show_history()

    def go_back(self) -> None:
        self._travel(self._back, self._forward)

    def go_forward(self) -> None:
        self._travel(self._forward, self._back)

    def _travel(self, source: list[Visit], target: list[Visit]) -> None:
        here = self.current()
        if not source or here is None:
            return
        visit = source.pop()
        target.append(here)
        back, forward = list(self._back), list(self._forward)
        self.open(visit.document, visit.place)
        self._back, self._forward = back, forward
        self._show_history()

    def _ask_about(self, page: int, start: int, count: int) -> None:
        if self._document is not None and self._file is not None:
            name = f"the selection on page {self._file.label(page)}"
            self.about.emit(Scope(name, int(self._document.id), page, page, start, count))

    def _show_history(self) -> None:
        self.toolbar.back_button.setEnabled(bool(self._back))
        self.toolbar.forward_button.setEnabled(bool(self._forward))

    # --- search -----------------------------------------------------------------------------------
    def search_in_document(self) -> None:
        if self._file is not None:
            self.toolbar.begin_search()

    # --- building ---------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        hint = "Documents of the conversation open here, others by a double click in the library."
        empty = EmptyState(self._services.theme, "document", "No document open", hint)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self.outline)
        split.addWidget(self.view)
        split.setSizes([200, 500])
        split.setStretchFactor(1, 1)
        self.outline.hide()
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.toolbar)
        column.addWidget(split, 1)
        self._stack.addWidget(empty)
        self._stack.addWidget(page)
        layout = QVBoxLayout(self, contentsMargins=QMargins())
        layout.addWidget(self._stack)

    def _connect(self) -> None:
        bar, view = self.toolbar, self.view
        bar.back.connect(self.go_back)
        bar.forward.connect(self.go_forward)
        for signal, way in ((bar.zoom_in, 1), (bar.zoom_out, -1)):
            signal.connect(lambda way=way: view.zoom_step(way))
        bar.fit.connect(view.fit_width)
        bar.page_entered.connect(self._page_entered)
        bar.outline_wanted.connect(self.outline.setVisible)
        view.page_changed.connect(self._page_changed)
        view.zoom_changed.connect(bar.show_zoom)
        self.outline.chosen.connect(self._go_to_page)
        self.selecting.about.connect(self._ask_about)
        inside = Qt.ShortcutContext.WidgetWithChildrenShortcut
        for keys, way in (("F3", 1), ("Shift+F3", -1)):
            QShortcut(QKeySequence(keys), self, lambda way=way: self.finding.step(way)).setContext(inside)
