"""What another process (the command line) stores while the window is in sight: noticed within seconds, and shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from app.core.records import Conversation
from app.services import Services

if TYPE_CHECKING:
    from app.window import Window

EVERY_MS = 2000


class Elsewhere(QObject):
    """Asks the database for its version (microseconds, off the main thread); only a change is followed by reading."""

    def __init__(self, services: Services, window: Window) -> None:
        super().__init__(window)
        self._services = services
        self._window = window
        self._seen: int | None = None
        self._library_seen: int | None = None
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self._look_in_sight)

    def start(self) -> None:
        """What is stored now is what the window is about to read."""
        self.look()
        self._timer.start()

    def look(self) -> None:
        store = self._services.workspace
        self._services.tasks.read(lambda: store.conversations.changes_elsewhere(), self._compare, _told_already)
        self._services.tasks.read(lambda: store.library.changes(), self._compare_library, _told_already)

    def _look_in_sight(self) -> None:
        if self._window.isVisible() and not self._window.isMinimized():
            self.look()

    def _compare(self, version: int) -> None:
        seen, self._seen = self._seen, version
        if seen is not None and seen != version:
            self._window.controller.look_again()
            store = self._services.workspace
            self._services.tasks.read(lambda: store.conversations.list(), self._show, _told_already)

    def _compare_library(self, version: int) -> None:
        """Imports of this window write too; what is shown already is not shown again."""
        seen, self._library_seen = self._library_seen, version
        if (seen is not None and seen != version) or self._window.library.awaits_another:
            self._window.library.look_again()

    def _show(self, conversations: Sequence[Conversation]) -> None:
        self._window.conversations.show_stored(conversations)


def _told_already(error: Exception) -> None:
    """Conversations that cannot be read are told where they are listed, not every two seconds."""
