"""Choosing one of many documents: all are listed, newest first, and found by words of their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSortFilterProxyModel, QStringListModel, Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QListView, QVBoxLayout, QWidget

from app.widgets.cards import label
from app.widgets.format import plural

if TYPE_CHECKING:
    from PySide6.QtCore import QModelIndex, QPersistentModelIndex

    from rag import Document


class _ByWords(QSortFilterProxyModel):
    """Names that hold all words, in any order."""

    words: tuple[str, ...] = ()

    def look_for(self, text: str) -> None:
        self.words = tuple(text.casefold().split())
        self.invalidate()

    def filterAcceptsRow(self, row: int, parent: QModelIndex | QPersistentModelIndex) -> bool:
        name = str(self.sourceModel().index(row, 0, parent).data()).casefold()
        return all(word in name for word in self.words)


class DocumentChooser(QDialog):
    """`chosen` is called with the id of the document that was activated; the dialog then closes."""

    def __init__(self, documents: Sequence[Document], chosen: Callable[[int], object], parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Add a document")
        self.resize(460, 480)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._documents, self._chosen = documents, chosen
        self._rows = _ByWords(self)
        self._rows.setSourceModel(QStringListModel([document.name for document in documents], self))
        self.search = QLineEdit(placeholderText="Find by name")
        self.search.setAccessibleName("Find a document by name")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._look_for)
        self.list = QListView()
        self.list.setModel(self._rows)
        self.list.setUniformItemSizes(True)
        self.list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.list.setAccessibleName("Documents of the library")
        self.list.activated.connect(self._take)
        self.found = label("", "muted")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.button(QDialogButtonBox.StandardButton.Ok).setText("Add")
        buttons.accepted.connect(lambda: self._take(self.list.currentIndex()))
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        for part in (self.search, self.list, self.found, buttons):
            layout.addWidget(part)
        self._look_for("")

    def _look_for(self, text: str) -> None:
        self._rows.look_for(text)
        rows = self._rows.rowCount()
        self.list.setCurrentIndex(self._rows.index(0, 0))
        self.found.setText(plural(rows, "document") if rows else "No document has this name.")

    def _take(self, index: QModelIndex) -> None:
        if index.isValid():
            self._chosen(int(self._documents[self._rows.mapToSource(index).row()].id))
            self.accept()
