"""A question or a change that was refused: why, above the composer, with what can be done about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QObject, QTimer

from app.chat.panel import ChatPanel
from app.core.errors import DoesNotFit, HeldElsewhere, NothingReadable, NothingToDo, UserError
from app.services import Services
from app.widgets.cards import ErrorCard

LOOK_EVERY_MS = 500


class Refused(QObject):
    """`fork`: goes on in a copy of the conversation. That another process holds it is told as long as it does."""

    def __init__(self, services: Services, panel: ChatPanel, fork: Callable[[], object]) -> None:
        super().__init__(panel)
        self._services = services
        self._panel = panel
        self._fork = fork
        self._held: tuple[ErrorCard, HeldElsewhere] | None = None
        self._timer = QTimer(self, singleShot=True, interval=LOOK_EVERY_MS)
        self._timer.timeout.connect(self._look)

    def show(self, error: UserError) -> None:
        panel = self._panel
        if isinstance(error, DoesNotFit) and error.ways:
            panel.show_ways(error.overrun, error.ways, True, error.whole)
        elif isinstance(error, NothingReadable) and error.documents:
            panel.show_error(error, partial(self._read_scans, error.documents), "Read the scans")
        elif isinstance(error, NothingToDo):
            self._services.toasts.say(f"{error.what} {error.why}")
        elif isinstance(error, HeldElsewhere):
            self._held = panel.show_error(error, self._fork, "Fork"), error
            self._timer.start()
        else:
            panel.show_error(error)

    def _look(self) -> None:
        """Another process that was killed says nothing, so it is asked for."""
        if self._held is None or not self._panel.shows_error(self._held[0]):
            self._held = None
            return
        (card, error), store = self._held, self._services.workspace.conversations
        self._services.tasks.read(
            lambda: store.leased_by(error.conversation) in (None, os.getpid()),
            lambda is_free: self._looked(card, is_free),
        )

    def _looked(self, card: ErrorCard, is_free: bool) -> None:
        if is_free and self._panel.shows_error(card):
            self._panel.clear_errors()
        else:
            self._timer.start()

    def _read_scans(self, documents: tuple[int, ...]) -> None:
        """Progress stands at the documents in the library; the question waits in the composer."""
        self._panel.clear_errors()
        for document in documents:
            self._services.tasks.write(partial(self._services.workspace.documents.recognise, document))
