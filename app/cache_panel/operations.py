"""What was done with the conversation's state, latest first."""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QPlainTextEdit

from app.core.log_words import log_time, log_words
from app.services import Services
from engine.messages import ConversationId

LINES_SEEN = 7


class OperationLog(QPlainTextEdit):
    def __init__(self, services: Services) -> None:
        super().__init__(readOnly=True)
        self._services = services
        self._conversation: ConversationId | None = None
        self.setObjectName("log")
        self.setAccessibleName("Operations on this conversation's state")
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(max(7.5, self.font().pointSizeF() - 1))
        self.setFont(font)
        self.setFixedHeight(LINES_SEEN * self.fontMetrics().lineSpacing() + 22)

    def read(self, conversation: ConversationId) -> None:
        self._conversation = conversation
        workspace = self._services.workspace
        self._services.tasks.read(
            lambda: workspace.states.operations(conversation), lambda entries: self._show(conversation, entries)
        )

    def _show(self, conversation: ConversationId, entries: list[dict[str, Any]]) -> None:
        if conversation == self._conversation:
            lines = [f"{log_time(entry, seconds=False)}  {log_words(entry)}" for entry in reversed(entries)]
            self.setPlainText("\n".join(lines) or "Nothing yet.")
