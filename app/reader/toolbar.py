"""The reader's controls: back and forward, page, zoom, outline, search."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QVBoxLayout, QWidget

from app.widgets.cards import label
from app.widgets.elided import ElidedLabel
from app.widgets.search_field import SearchField
from app.widgets.theme import Theme

NARROW = 370


class ReaderToolbar(QWidget):
    """Signals: what was pressed; `page_entered` carries what was typed, `search_for` the words."""

    back = Signal()
    forward = Signal()
    zoom_in = Signal()
    zoom_out = Signal()
    fit = Signal()
    outline_wanted = Signal(bool)
    page_entered = Signal(str)
    search_for = Signal(str)
    next_found = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._tools: list[tuple[QToolButton, str]] = []
        self.name = ElidedLabel("", Qt.TextElideMode.ElideMiddle)
        self.name.setProperty("role", "title")
        self.page = QLineEdit(alignment=Qt.AlignmentFlag.AlignCenter)
        self.page.setFixedWidth(52)
        self.page.setAcceptDrops(False)
        self.page.setAccessibleName("Page (printed label)")
        self.page.setToolTip("Printed page label or number")
        self.page.returnPressed.connect(lambda: self.page_entered.emit(self.page.text().strip()))
        self.count = ElidedLabel()
        self.count.setProperty("role", "muted")
        self.zoom = label("100 %", "muted", wrap=False)
        self.zoom.setMinimumWidth(44)
        self.zoom.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.outline = self._tool("outline", "Outline", lambda: self.outline_wanted.emit(self.outline.isChecked()))
        self.outline.setCheckable(True)
        self.back_button = self._tool("left", "Back (Alt+Left)", self.back.emit)
        self.forward_button = self._tool("right", "Forward (Alt+Right)", self.forward.emit)
        self._search_row = self._make_search_row()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 6)
        layout.setSpacing(4)
        layout.addLayout(self._first_row())
        layout.addLayout(self._second_row())
        layout.addWidget(self._search_row)
        for part in (self._search_row, self.zoom, self._fit):
            part.hide()
        theme.changed.connect(self._draw)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Where there is little room, what keys and the page itself tell gives way."""
        super().resizeEvent(event)
        self.zoom.setVisible(event.size().width() >= NARROW)
        self._fit.setVisible(event.size().width() >= NARROW)

    def show_name(self, name: str) -> None:
        self.name.setText(name)
        self.name.setToolTip(name)

    def show_page(self, shown_label: str, page: int, pages: int) -> None:
        if not self.page.hasFocus():
            self.page.setText(shown_label)
        same = shown_label == str(page + 1)
        self.count.setText(f"of {pages:,}" if same else f"({page + 1:,} of {pages:,})")
        self.count.setToolTip(f"Page {page + 1} of {pages} in the file")

    def show_zoom(self, zoom: float) -> None:
        self.zoom.setText(f"{zoom * 100:.0f} %")

    def show_found(self, current: int, total: int, searching: bool = False) -> None:
        """`current`: below 0 where none is shown yet. `searching`: there may be more."""
        if current >= 0:
            self._found.setText(f"{current + 1:,} of {total:,}{'…' if searching else ''}")
        elif searching:
            self._found.setText("searching…")
        else:
            self._found.setText(f"{total:,} found" if total else "none")

    def show_no_search(self) -> None:
        self._found.clear()

    def begin_search(self) -> None:
        self._search_row.show()
        self._words.setFocus()
        self._words.selectAll()

    def end_search(self) -> None:
        self._search_row.hide()
        self._words.clear()

    def _first_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.outline)
        row.addWidget(self.name, 1)
        row.addWidget(self._tool("search", "Search in the document (Ctrl+F)", self.begin_search))
        return row

    def _second_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.back_button)
        row.addWidget(self.forward_button)
        row.addSpacing(4)
        row.addWidget(self.page)
        row.addWidget(self.count, 1)
        row.addWidget(self._tool("zoom-out", "Smaller (Ctrl+-)", self.zoom_out.emit))
        row.addWidget(self.zoom)
        row.addWidget(self._tool("zoom-in", "Larger (Ctrl++)", self.zoom_in.emit))
        self._fit = self._tool("fit-width", "Fit the width (Ctrl+0)", self.fit.emit)
        row.addWidget(self._fit)
        return row

    def _make_search_row(self) -> QWidget:
        self._words = SearchField("Search in the document", "Search in the document")
        self._words.left.connect(self.end_search)
        self._words.textChanged.connect(self.search_for)
        self._words.returnPressed.connect(lambda: self.next_found.emit(1))
        self._found = QLabel()
        made = QWidget()
        row = QHBoxLayout(made)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self._words, 1)
        row.addWidget(self._found)
        row.addWidget(self._tool("up-small", "Previous (Shift+F3)", lambda: self.next_found.emit(-1)))
        row.addWidget(self._tool("down-small", "Next (F3)", lambda: self.next_found.emit(1)))
        row.addWidget(self._tool("close", "Close the search", self.end_search))
        return made

    def _tool(self, icon: str, tip: str, clicked: Callable[[], object]) -> QToolButton:
        made = QToolButton(icon=self._theme.icon(icon), toolTip=tip, iconSize=QSize(18, 18))
        made.setAccessibleName(tip)
        made.clicked.connect(lambda: clicked())
        self._tools.append((made, icon))
        return made

    def _draw(self) -> None:
        for made, icon in self._tools:
            made.setIcon(self._theme.icon(icon))
