"""A line to search with that keeps Escape for itself: it leaves the search instead of stopping an answer."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit


class SearchField(QLineEdit):
    """Signals: left (Escape was pressed), down (to what was found)."""

    left = Signal()
    down = Signal()

    def __init__(self, placeholder: str, name: str) -> None:
        super().__init__()
        self.setPlaceholderText(placeholder)
        self.setAccessibleName(name)
        self.setClearButtonEnabled(True)
        self.setAcceptDrops(False)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and _is_escape(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _is_escape(event):
            self.left.emit()
        elif event.key() == Qt.Key.Key_Down:
            self.down.emit()
        else:
            super().keyPressEvent(event)


def _is_escape(event: QEvent) -> bool:
    return isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
