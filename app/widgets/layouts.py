"""Small services for layouts."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLayout, QScrollArea, QStackedWidget, QVBoxLayout, QWidget


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
