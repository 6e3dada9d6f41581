"""Inline boxes: an error with what, why and next; an empty state that says what to do."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.core.errors import UserError
from app.widgets.flow import FlowLayout
from app.widgets.format import breakable, unbroken
from app.widgets.theme import Theme


class Words(QLabel):
    """Lines never end between a number and its unit."""

    def __init__(self, text: str = "") -> None:
        super().__init__(unbroken(text))

    def setText(self, text: str) -> None:
        super().setText(unbroken(text))


def label(text: str = "", role: str = "", wrap: bool = True) -> QLabel:
    """A label whose text can be selected; `role` is one of the sheet's (muted, section, title, good, ...)."""
    made = Words(text)
    made.setWordWrap(wrap)
    made.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        made.setProperty("role", role)
    return made


def set_role(widget: QWidget, role: str) -> None:
    if widget.property("role") != role:
        widget.setProperty("role", role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def button(text: str, clicked: Callable[..., object], kind: str = "", tip: str = "") -> QPushButton:
    made = QPushButton(text)
    made.setAutoDefault(False)
    if kind:
        made.setProperty("kind", kind)
    made.setToolTip(tip)
    made.clicked.connect(lambda: clicked())
    return made


class ErrorCard(QWidget):
    """What went wrong, why, and what to do next, where it happened.

    Signals:
        dismissed: the reader closed it.
    """

    dismissed = Signal()

    def __init__(self, theme: Theme, error: UserError, kind: str = "error") -> None:
        super().__init__()
        self.setObjectName("errorCard" if kind == "error" else "warnCard")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(f"{kind}: {error.what}")
        self.kind = kind
        self._error = error
        self._theme = theme
        self._close: QToolButton | None = None
        row = QWidget()
        self._buttons = FlowLayout(row)
        texts = QVBoxLayout()
        texts.setSpacing(3)
        self._head = QHBoxLayout()
        self._head.addWidget(_selectable(label(breakable(error.what), "title")), 1)
        texts.addLayout(self._head)
        for text in (error.why, error.next):
            if text:
                texts.addWidget(_selectable(label(breakable(text))))
        texts.addWidget(row)
        self._picture = QLabel()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 10)
        layout.setSpacing(10)
        layout.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)
        self._buttons.setContentsMargins(0, 4, 0, 0)
        self.add_button("Copy details", self._copy)
        theme.changed.connect(self._draw)
        self._draw()

    def add_button(self, text: str, clicked: Callable[[], object]) -> None:
        self._buttons.insert_widget(0, button(text, clicked))

    def add_dismiss(self) -> None:
        self._close = QToolButton(iconSize=QSize(12, 12), toolTip="Dismiss")
        self._close.setAccessibleName("Dismiss")
        self._close.clicked.connect(lambda: self.dismissed.emit())
        self._head.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
        self._draw()

    def _draw(self) -> None:
        self._picture.setPixmap(self._theme.pixmap("warning", "bad" if self.kind == "error" else "warn", 20))
        if self._close is not None:
            self._close.setIcon(self._theme.icon("close"))

    def _copy(self) -> None:
        parts = (self._error.what, self._error.why, self._error.next)
        QGuiApplication.clipboard().setText("\n".join(part for part in parts if part))


def _selectable(made: QLabel) -> QLabel:
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


class EmptyState(QWidget):
    """An icon, a sentence, a hint, and buttons: what to do where there is nothing yet."""

    def __init__(self, theme: Theme, icon: str, title: str, hint: str) -> None:
        super().__init__()
        self._theme = theme
        self._icon = icon
        self._picture = QLabel(alignment=Qt.AlignmentFlag.AlignCenter)
        self.title = label(title, "title")
        self.hint = label(hint, "muted")
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(24, 24, 24, 24)
        self._layout.setSpacing(8)
        self._layout.addStretch(2)
        self._layout.addWidget(self._picture)
        for text in (self.title, self.hint):
            text.setAlignment(Qt.AlignmentFlag.AlignCenter)
            self._layout.addWidget(text)
        self._row = QHBoxLayout()
        self._row.addStretch()
        self._row.addStretch()
        self._layout.addLayout(self._row)
        self._layout.addStretch(3)
        theme.changed.connect(self._draw)
        self._draw()

    def add_button(self, text: str, clicked: Callable[[], object], kind: str = "") -> QPushButton:
        made = button(text, clicked, kind)
        self._row.insertWidget(self._row.count() - 1, made)
        return made

    def add_widget(self, widget: QWidget) -> None:
        self._layout.insertWidget(self._layout.count() - 1, widget)

    def add_centred(self, widget: QWidget) -> None:
        """No wider than it needs."""
        self.add_widget(widget)
        self._layout.setAlignment(widget, Qt.AlignmentFlag.AlignHCenter)

    def _draw(self) -> None:
        self._picture.setPixmap(self._theme.pixmap(self._icon, "faint", 32))
