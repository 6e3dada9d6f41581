"""The strip above the editor while an earlier question is written again."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from app.core.records import Message
from app.widgets.elided import ElidedLabel
from app.widgets.theme import Theme


class Editing(QWidget):
    """Signals: cancelled. Attributes: message: the question that is edited, None; draft: what stood here before."""

    cancelled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.message: Message | None = None
        self.draft = ""
        self._words = ElidedLabel("Editing a question: it and what follows are replaced when you send.")
        self._words.setProperty("role", "muted")
        self._cancel = QToolButton(iconSize=QSize(12, 12), toolTip="Leave the question as it was (Esc)")
        self._cancel.setAccessibleName("Cancel editing")
        self._cancel.clicked.connect(self.cancelled)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(4, 2, 0, 2)
        layout.addWidget(self._words, 1)
        layout.addWidget(self._cancel, 0, Qt.AlignmentFlag.AlignVCenter)
        theme.changed.connect(self._draw)
        self._draw()
        self.hide()

    def begin(self, message: Message, draft: str) -> None:
        self.message, self.draft = message, draft
        self.show()

    def end(self) -> str:
        """Returns the draft that stood here before."""
        self.message = None
        self.hide()
        return self.draft

    def _draw(self) -> None:
        self._cancel.setIcon(self._theme.icon("close"))
