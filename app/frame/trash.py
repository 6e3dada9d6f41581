"""The trash: conversations and documents, to bring back or to delete for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QVBoxLayout, QWidget

from app.core.records import Conversation
from app.services import Services
from app.widgets.cards import EmptyState, button
from app.widgets.format import ago, plural
from app.widgets.rows import FACE, RowFace, RowList

if TYPE_CHECKING:
    from rag import Document


@dataclass(frozen=True)
class Thrown:
    item: Conversation | Document

    @property
    def face(self) -> RowFace:
        if isinstance(self.item, Conversation):
            when = ago(self.item.trashed) if self.item.trashed is not None else ""
            return RowFace(self.item.title or "New conversation", f"conversation, deleted {when}", "chat")
        return RowFace(self.item.name, f"document, {plural(self.item.pages, 'page')}", "document")


class TrashModel(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Thrown] = []

    def show_rows(self, rows: Sequence[Thrown]) -> None:
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return len(self._rows)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        shown = self._rows[index.row()].face
        if role == FACE:
            return shown
        if role == Qt.ItemDataRole.DisplayRole:
            return shown.title
        return f"{shown.title}, {shown.detail}" if role == Qt.ItemDataRole.AccessibleTextRole else None

    def at(self, row: int) -> Thrown | None:
        return self._rows[row] if 0 <= row < len(self._rows) else None


class TrashDialog(QDialog):
    """Signals: restored (something came back; argument: Conversation, or None for a document)."""

    restored = Signal(object)

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self.setWindowTitle("Trash")
        self.resize(480, 420)
        self._rows = TrashModel()
        self._list = RowList(services.theme, "Trash")
        self._list.setModel(self._rows)
        self._empty = EmptyState(
            services.theme,
            "trash",
            "The trash is empty",
            "Deleted conversations and documents wait here until you bring them back or delete them for good.",
        )
        actions = QHBoxLayout()
        self._actions = (button("Bring back", self.restore, "primary"), button("Delete for good", self.purge))
        for made in self._actions:
            made.setEnabled(False)
            actions.addWidget(made)
        self._list.selectionModel().currentChanged.connect(self._allow)
        actions.addStretch(1)
        close = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        close.rejected.connect(self.reject)
        actions.addWidget(close)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 14, 16, 12)
        layout.addWidget(self._empty, 1)
        layout.addWidget(self._list, 1)
        layout.addStretch(0)
        layout.addLayout(actions)
        self.reload()

    def reload(self) -> None:
        workspace = self._services.workspace

        def read() -> list[Thrown]:
            documents = workspace.library.documents(include_trashed=True)
            thrown = [Thrown(d) for d in documents if d.state == "trashed"]
            return [Thrown(c) for c in workspace.conversations.list(trashed=True)] + thrown

        self._services.tasks.read(read, self._show)

    def restore(self) -> None:
        self._act(restore=True)

    def purge(self) -> None:
        self._act(restore=False)

    def _act(self, restore: bool) -> None:
        thrown, workspace = self._rows.at(self._list.currentIndex().row()), self._services.workspace
        if thrown is None:
            return
        item = thrown.item

        def work() -> Conversation | None:
            if isinstance(item, Conversation):
                return workspace.chats.restore(item.id) if restore else workspace.chats.purge(item.id)
            change = workspace.documents.restore if restore else workspace.documents.purge
            change(item.id)
            return None

        self._services.tasks.write(work, self._done if restore else lambda _: self.reload())

    def _done(self, conversation: Conversation | None) -> None:
        self.reload()
        self.restored.emit(conversation)

    def _show(self, rows: Sequence[Thrown]) -> None:
        self._rows.show_rows(rows)
        self._empty.setVisible(not rows)
        self._list.setVisible(bool(rows))
        self._list.setCurrentIndex(self._rows.index(0))
        self._allow()

    def _allow(self) -> None:
        for made in self._actions:
            made.setEnabled(self._rows.at(self._list.currentIndex().row()) is not None)
