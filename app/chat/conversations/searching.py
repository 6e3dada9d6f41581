"""Search over titles and messages: as one types, at once with Enter, which opens the first that is found."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QListView

from app.chat.conversations.model import ConversationModel
from app.core.records import SearchHit
from app.services import Services
from app.widgets.search_field import SearchField


class Searching(QObject):
    """Signals: found (argument: SearchHits), ended (nothing is searched for any more)."""

    found = Signal(object)
    ended = Signal()

    def __init__(self, services: Services, rows: ConversationModel, view: QListView) -> None:
        super().__init__(view)
        self._services = services
        self._rows = rows
        self._view = view
        self._open_when_found = False
        self.field = SearchField("Search conversations", "Search titles and messages")
        self.field.setToolTip("Search titles and messages (Ctrl+K)")
        self._typing = QTimer(self, singleShot=True, interval=150)
        self._typing.timeout.connect(self._run)
        self.field.textChanged.connect(lambda: self._typing.start())
        self.field.returnPressed.connect(self._open_first)
        self.field.down.connect(self._go_down)
        self.field.left.connect(self._leave)

    def begin(self) -> None:
        self.field.setFocus()
        self.field.selectAll()

    def is_on(self) -> bool:
        return bool(self.field.text().strip())

    def _leave(self) -> None:
        self.field.clear()
        self._view.setFocus()

    def _run(self) -> None:
        words, search = self.field.text().strip(), self._services.workspace.conversations.search
        if words:
            self._services.tasks.read(lambda: search(words), self._show)
        else:
            self.ended.emit()

    def _show(self, hits: Sequence[SearchHit]) -> None:
        if self.is_on():
            self.found.emit(hits)
            if self._open_when_found:
                self._open_first()

    def _open_first(self) -> None:
        """What was typed last may not have been searched for yet."""
        self._open_when_found = self._typing.isActive()
        if self._open_when_found:
            self._typing.stop()
            self._run()
        elif self.is_on() and self._rows.rowCount():
            self._view.setCurrentIndex(self._rows.index(0))

    def _go_down(self) -> None:
        self._view.setFocus()
        if self._rows.rowCount() and not self._view.selectionModel().hasSelection():
            self._view.setCurrentIndex(self._rows.index(0))
