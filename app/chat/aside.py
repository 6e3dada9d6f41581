"""Text too long to be edited in the composer: it belongs to the question, kept beside it with a note."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from app.widgets.elided import ElidedLabel
from app.widgets.format import plural
from app.widgets.theme import Theme

LONGEST_EDITED = 20_000  # characters; laying out more in one line takes visibly long
PREVIEW = 60


class Aside(QWidget):
    """One long text, or none. Signals: changed."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.text = ""
        self._note = ElidedLabel()
        self._note.setProperty("role", "muted")
        self._remove = QToolButton(iconSize=QSize(12, 12), toolTip="Remove the pasted text")
        self._remove.setAccessibleName("Remove the pasted text")
        self._remove.clicked.connect(lambda: self.put(""))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(4, 2, 0, 2)
        layout.addWidget(self._note, 1)
        layout.addWidget(self._remove, 0, Qt.AlignmentFlag.AlignVCenter)
        theme.changed.connect(self._draw)
        self._draw()
        self.hide()

    def put(self, text: str) -> None:
        """Replaces what was kept; empty: nothing is."""
        if text == self.text:
            return
        self.text = text
        beginning = " ".join(text[:PREVIEW].split())
        self._note.setText(f"Long text, {plural(len(text), 'character')}: {beginning}…")
        self._note.setToolTip("It is sent with the question. It is too long to be edited here.")
        self.setVisible(bool(text))
        self.changed.emit()

    def add(self, text: str) -> None:
        self.put(f"{self.text}\n\n{text}" if self.text else text)

    def _draw(self) -> None:
        self._remove.setIcon(self._theme.icon("close"))
