"""Under an answer that may miss something: how much of the documents it rests on, and reading the rest."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.core.records import TurnReport
from app.widgets.cards import button, label
from app.widgets.format import count


class CoverageNote(QWidget):
    """Signals: read_rest (the reader wants the other pages read)."""

    read_rest = Signal()

    def __init__(self, report: TurnReport, may_read: bool) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 2)
        row.setSpacing(8)
        row.addWidget(label(report.coverage, "warn"), 1)
        if may_read and report.unread:
            pages = "other page" if report.unread == 1 else f"other {count(report.unread)} pages"
            tip = "Part by part, with notes that cite; it can be stopped and gone on with"
            made = button(f"Read the {pages}", self.read_rest.emit, tip=tip)
            row.addWidget(made, 0, Qt.AlignmentFlag.AlignTop)
