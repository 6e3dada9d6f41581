"""Small services for layouts."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLayout, QScrollArea, QStackedWidget, QVBoxLayout, QWidget


def clear_layout(layout: QLayout) -> None:
    """Removes and deletes every widget, those of layouts inside as well."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
        elif (inner := item.layout()) is not None:
            clear_layout(inner)


def fill_panel(panel: QWidget, stack: QStackedWidget, empty: QWidget, page: QWidget) -> None:
    """`stack` fills the panel: `empty` is its first place, `page`, which scrolls up and down, its second."""
    page.setObjectName("page")
    scroll = QScrollArea(widgetResizable=True)
    scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroll.setWidget(page)
    stack.addWidget(empty)
    stack.addWidget(scroll)
    layout = QVBoxLayout(panel)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(stack)


class Beside(QWidget):
    """Controls and a text; the text goes below them where fewer than `least` pixels are left for it beside."""

    def __init__(self, controls: QLayout, text: QWidget, least: int) -> None:
        super().__init__()
        self._controls, self._least = controls, least
        self._box = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.setSpacing(8)
        self._box.addLayout(controls)
        self._box.addWidget(text, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = event.size().width() - self._controls.sizeHint().width()
        ways = QBoxLayout.Direction
        self._box.setDirection(ways.LeftToRight if room >= self._least else ways.TopToBottom)
        self._box.setSpacing(8 if room >= self._least else 2)
