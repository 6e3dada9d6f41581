"""The model's reasoning above its answer: a line that says how long it took, unfolded on demand."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QSize, Qt, QTimer
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from app.chat.rich_text import RichText
from app.widgets.format import duration
from app.widgets.theme import Theme

TICK_MS = 500


def thought_words(seconds: float, running: bool) -> str:
    """`Thinking, 4 s`, `Thought for 12 s`, `Thought` where the time is not known."""
    shown = duration(seconds) if seconds >= 1 else ""
    if running:
        return f"Thinking, {shown}" if shown else "Thinking"
    return f"Thought for {shown}" if shown else "Thought for a moment" if seconds > 0 else "Thought"


class ThoughtView(QWidget):
    """Open while it grows, folded when the answer begins, unless the reader has chosen otherwise."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._seconds = 0.0
        self._running = False
        self._chosen = False
        self._clock = QElapsedTimer()
        self.text = ""
        self._tick = QTimer(self, interval=TICK_MS)
        self._tick.timeout.connect(self._say)
        self._toggle = QToolButton(checkable=True, iconSize=QSize(12, 12))
        self._toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._toggle.setToolTip("Show or hide the model's reasoning; it is no part of the answer")
        self._toggle.setProperty("kind", "fold")
        self._toggle.clicked.connect(self._choose)
        self._body: RichText | None = None  # made when it is first unfolded
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 8)
        self._column.setSpacing(4)
        self._column.addWidget(self._toggle, 0, Qt.AlignmentFlag.AlignLeft)
        self.hide()

    def show_thought(self, text: str, seconds: float) -> None:
        """A settled one; nothing is shown without text."""
        self._running, self._seconds = False, seconds
        self._tick.stop()
        self._put(text)
        if not self._chosen:
            self._toggle.setChecked(False)
        self._fold()

    def append(self, delta: str) -> None:
        if not self._running:
            self._running = True
            self._clock.start()
            self._tick.start()
            if not self._chosen:
                self._toggle.setChecked(True)
        self._put(self.text + delta)
        self._fold()

    def end(self) -> None:
        """The answer begins."""
        if self._running:
            self._seconds += self._clock.elapsed() / 1000
            self.show_thought(self.text, self._seconds)

    @property
    def is_open(self) -> bool:
        return self._toggle.isChecked()

    def _put(self, text: str) -> None:
        self.text = text
        self.setVisible(bool(text.strip()))

    def _choose(self) -> None:
        self._chosen = True
        self._fold()

    def _fold(self) -> None:
        if self.is_open:
            self._unfold()
        elif self._body is not None:
            self._body.hide()
        self._toggle.setIcon(self._theme.icon("down-small" if self._toggle.isChecked() else "right-small"))
        self._say()

    def _unfold(self) -> None:
        if self._body is None:
            self._body = RichText(self._theme)
            self._body.setObjectName("thought")
            self._body.setAccessibleName("Reasoning")
            self._column.addWidget(self._body)
        if self._body.toPlainText() != self.text.strip():
            self._body.setPlainText(self.text.strip())
            self._body.updateGeometry()
        self._body.show()

    def _say(self) -> None:
        running = self._clock.elapsed() / 1000 if self._running else 0.0
        words = thought_words(self._seconds + running, self._running)
        self._toggle.setText(f" {words}")
        self._toggle.setAccessibleName(f"{words}. {'Hide' if self.is_open else 'Show'} the reasoning")
