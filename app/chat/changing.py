"""What the reader sets for a conversation: its documents, mode and scope, and reasoning for the model."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.chat.panel import ChatPanel
from app.core.lookups import Scope
from app.core.records import Conversation, Mode
from app.services import Services
from engine.messages import ConversationId, Reasoning


class Changing(QObject):
    """Signals:
    changed: the conversation is another one now (argument: Conversation).
    """

    changed = Signal(object)

    def __init__(self, services: Services, panel: ChatPanel, shown: Callable[[], Conversation | None]) -> None:
        super().__init__(panel)
        self._services = services
        self._workspace = services.workspace
        self._panel = panel
        self._shown = shown
        panel.header.mode_chosen.connect(self.set_mode)
        panel.header.reasoning.chosen.connect(self.set_reasoning)
        panel.header.removed.connect(self.detach)
        panel.header.scope_removed.connect(lambda: self.set_scope(None))

    def set_reasoning(self, wanted: Reasoning) -> None:
        """Where that cannot be the switch goes back to what is loaded."""
        self._services.tasks.write(lambda: self._workspace.reloads.set_reasoning(wanted), None, self._reasoning_failed)

    def _reasoning_failed(self, error: Exception) -> None:
        self._panel.show_failure(error)
        if self._workspace.loaded is not None:
            self._panel.header.show_model(self._workspace.loaded)

    def attach(self, document: int) -> None:
        self._change(lambda id: self._workspace.chats.attach(id, document))

    def detach(self, document: int) -> None:
        self._change(lambda id: self._workspace.chats.detach(id, document))
        self._services.toasts.offer_undo("Later questions do not look into it.", lambda: self.attach(document))

    def set_mode(self, mode: Mode) -> None:
        self._change(lambda id: self._workspace.chats.set_mode(id, mode))

    def set_scope(self, scope: Scope | None) -> None:
        self._change(lambda id: self._workspace.chats.set_scope(id, scope))

    def _change(self, change: Callable[[ConversationId], Conversation]) -> None:
        shown = self._shown()
        if shown is not None:
            self._services.tasks.write(lambda: change(shown.id), self.changed.emit, self._panel.show_failure)
