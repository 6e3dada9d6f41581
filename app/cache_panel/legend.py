"""What the colours of the page map mean; only those that are there."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.cache_panel.page_map import KINDS, kind_of
from app.widgets.cards import label
from app.widgets.flow import FlowLayout
from app.widgets.theme import Theme
from engine.messages import PageBits, StateReport

SQUARE = 9


class Legend(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._flow = FlowLayout(self, 12)
        self._entries = {name: self._entry(name) for name, _ in KINDS}
        self._hollow = label("pale: on disk only", "muted", wrap=False)
        self._flow.addWidget(self._hollow)
        theme.changed.connect(self._draw)
        self._draw()

    def show_kinds(self, report: StateReport) -> None:
        kinds = [kind_of(bits) for bits in report.pages]
        for name, (entry, _, words) in self._entries.items():
            entry.setVisible(name in kinds)
            words.setText(f"{name} {kinds.count(name):,}")
        disk_only = sum(bool(bits & PageBits.DISK) and not bits & PageBits.MEMORY for bits in report.pages)
        self._hollow.setVisible(bool(disk_only))
        self._hollow.setText(f"pale: on disk only {disk_only:,}")
        self._flow.invalidate()
        self.updateGeometry()

    def _entry(self, name: str) -> tuple[QWidget, QLabel, QLabel]:
        entry, square, words = QWidget(), QLabel(), label(name, "muted", wrap=False)
        square.setFixedSize(SQUARE, SQUARE)
        row = QHBoxLayout(entry)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(5)
        row.addWidget(square)
        row.addWidget(words)
        self._flow.addWidget(entry)
        return entry, square, words

    def _draw(self) -> None:
        for name, color in KINDS:
            self._entries[name][1].setStyleSheet(f"background: {self._theme.colors[color]}; border-radius: 2px;")
