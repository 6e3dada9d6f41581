"""The document's own table of contents as a flat, virtualised list with indentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractListModel, QModelIndex, Qt, Signal
from PySide6.QtWidgets import QListView

if TYPE_CHECKING:
    from rag import Outline

INDENT = "    "


class OutlineModel(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self._entries: Sequence[Outline] = ()

    def show_entries(self, entries: Sequence[Outline]) -> None:
        self.beginResetModel()
        self._entries = entries
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return len(self._entries)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self._entries[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return INDENT * max(0, entry.level) + entry.title
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return entry.title
        return None

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        able = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return able if self._entries[index.row()].page_index is not None else Qt.ItemFlag.NoItemFlags

    def page(self, row: int) -> int | None:
        return self._entries[row].page_index

    def row_for_page(self, page: int) -> int:
        """The last entry that begins on or before `page`; -1 before the first."""
        found = -1
        for row, entry in enumerate(self._entries):
            if entry.page_index is not None and entry.page_index <= page:
                found = row
            elif entry.page_index is not None and entry.level == 0:
                break
        return found


class OutlineView(QListView):
    """Signals: chosen (argument: page index)."""

    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.entries = OutlineModel()
        self.setModel(self.entries)
        self.setObjectName("outline")
        self.setUniformItemSizes(True)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Outline")
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)

    def show_page(self, page: int) -> None:
        row = self.entries.row_for_page(page)
        if row >= 0 and not self.hasFocus():
            index = self.entries.index(row)
            self.setCurrentIndex(index)
            self.scrollTo(index)

    def _choose(self, index: QModelIndex) -> None:
        page = self.entries.page(index.row())
        if page is not None:
            self.chosen.emit(page)
