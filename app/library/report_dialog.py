"""What intake made of every page, as a strip of pages and a table of those that need attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.library.model import file_lines
from app.widgets.cards import button, label
from app.widgets.format import count, plural
from app.widgets.theme import Theme
from rag.types import lacks_letters

if TYPE_CHECKING:
    from rag import IntakeReport, PageReport

KIND_WORDS = {
    "text": "text",
    "mixed": "text and scan",
    "scan": "scan",
    "garbled": "garbled text",
    "empty": "empty",
    "drawing": "drawing",
}
KIND_COLORS = {
    "text": "good",
    "mixed": "bar_prefill",
    "scan": "bad",
    "garbled": "bad",
    "empty": "line_strong",
    "drawing": "line_strong",
}
NUMBERS = (1, 3)


def summary(report: IntakeReport) -> str:
    """`311 pages: 309 text, 2 empty`."""
    kinds = Counter(page.kind for page in report.pages)
    parts = ", ".join(f"{count(kinds[kind])} {KIND_WORDS[kind]}" for kind in KIND_WORDS if kinds[kind])
    return f"{plural(len(report.pages), 'page')}: {parts}"


class PageStrip(QWidget):
    """One thin stripe per page, coloured by kind. Signals: chosen (argument: page index)."""

    chosen = Signal(int)

    def __init__(self, theme: Theme, pages: Sequence[PageReport]) -> None:
        super().__init__()
        self._theme = theme
        self._pages = pages
        self.setMinimumHeight(26)
        self.setMaximumHeight(26)
        self.setAccessibleName("Pages by kind")
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def sizeHint(self) -> QSize:
        return QSize(400, 26)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        step = self.width() / max(1, len(self._pages))
        for number, page in enumerate(self._pages):
            box = QRectF(number * step, 0, max(step - (1 if step > 4 else 0), 1.0), self.height())
            painter.fillRect(box, self._theme.color(KIND_COLORS[page.kind]))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = int(event.position().x() / max(1, self.width()) * len(self._pages))
        if 0 <= place < len(self._pages):
            self.chosen.emit(self._pages[place].page_index)


def needs_attention(page: PageReport) -> bool:
    return page.kind != "text" or lacks_letters(page)


class PagesModel(QAbstractTableModel):
    HEAD = ("Page", "File page", "Kind", "Characters", "Why")

    def __init__(self, pages: Sequence[PageReport]) -> None:
        super().__init__()
        self._all = pages
        self._shown = pages

    def only_problems(self, only: bool) -> None:
        self.beginResetModel()
        self._shown = [page for page in self._all if needs_attention(page)] if only else self._all
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return len(self._shown)

    def columnCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return len(self.HEAD)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        shown = role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal
        return self.HEAD[section] if shown else None

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return self._shown[index.row()].reason or None
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        page = self._shown[index.row()]
        cells = (
            page.label,
            str(page.page_index + 1),
            KIND_WORDS[page.kind],
            count(page.characters),
            page.reason,
        )
        return cells[index.column()]

    def page(self, row: int) -> int:
        return self._shown[row].page_index


def _alignment(column: int) -> Qt.AlignmentFlag:
    """Numbers stand right."""
    side = Qt.AlignmentFlag.AlignRight if column in NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class IntakeDialog(QDialog):
    """Signals: open_page (argument: page index), read_wanted (scans shall be read; argument: pages, None for all)."""

    open_page = Signal(int)
    read_wanted = Signal(object)

    def __init__(self, theme: Theme, report: IntakeReport, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"What was read: {report.document.name}")
        self.resize(680, 520)
        self._model = PagesModel(report.pages)
        table = QTableView()
        table.setModel(self._model)
        table.verticalHeader().hide()
        table.setShowGrid(False)
        table.setObjectName("pages")
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.horizontalHeader().setSectionResizeMode(4, QHeaderView.ResizeMode.Stretch)
        table.activated.connect(lambda index: self.open_page.emit(self._model.page(index.row())))
        strip = PageStrip(theme, report.pages)
        strip.chosen.connect(self.open_page)
        problems = any(needs_attention(page) for page in report.pages)
        only = QCheckBox("Only pages that need attention")
        only.toggled.connect(self._model.only_problems)
        only.setChecked(problems)
        only.setEnabled(problems)
        self._table = table
        close = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        close.rejected.connect(self.reject)
        if report.document.unreadable_pages:
            self.read_all = button(f"Read all {count(len(report.document.unreadable_pages))} scans", self._read_all)
            self.read_some = button("Read the selected pages", self._read_selected)
            for made in (self.read_all, self.read_some):
                made.setToolTip("Letters are recognised, about 6 s a page; then they are searched and cited like text")
                close.addButton(made, QDialogButtonBox.ButtonRole.ActionRole)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(18, 16, 18, 14)
        layout.setSpacing(10)
        layout.addWidget(label(summary(report), "title"))
        for line in file_lines(replace(report.document, note=report.note)):
            layout.addWidget(label(line, "warn" if line == report.note else "muted"))
        layout.addWidget(strip)
        layout.addWidget(only)
        layout.addWidget(table, 1)
        layout.addWidget(close)

    def _read_all(self) -> None:
        self.read_wanted.emit(None)
        self.accept()

    def _read_selected(self) -> None:
        rows = self._table.selectionModel().selectedRows()
        if rows:
            self.read_wanted.emit(sorted(self._model.page(index.row()) for index in rows))
            self.accept()
