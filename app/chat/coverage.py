"""Under an answer that may miss something: how much of the documents it rests on, and reading the rest."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app.core.lookups import PagesRead
from app.core.records import TurnReport
from app.widgets.cards import button, label
from app.widgets.format import count


class CoverageNote(QWidget):
    """Signals: read_rest (the reader wants the other pages read)."""

    read_rest = Signal()

    def __init__(self, report: TurnReport, may_read: bool) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 2)
        column.setSpacing(2)
        column.addWidget(label(report.coverage, "warn"))
        row = QHBoxLayout()
        row.setSpacing(8)
        column.addLayout(row)
        if may_read and report.unread:
            tip = "Part by part, with notes that cite; it can be stopped and gone on with"
            row.addWidget(button(rest_words(report), self.read_rest.emit, tip=tip))
        if any(one.pages for one in report.read):
            pages = label("\n".join(read_words(one) for one in report.read), "muted")
            row.addWidget(_which_pages(pages))
            column.addWidget(pages)
        row.addStretch(1)


def rest_words(report: TurnReport) -> str:
    """`Read the other 34 pages`, or all of them where the answer rests on none."""
    if any(one.pages for one in report.read):
        return "Read the other page" if report.unread == 1 else f"Read the other {count(report.unread)} pages"
    return "Read the page" if report.unread == 1 else f"Read all {count(report.unread)} pages"


def read_words(read: PagesRead) -> str:
    """`manual.pdf: pages 3–5, 9`."""
    if not read.pages:
        return f"{read.document}: nothing"
    return f"{read.document}: page{'' if len(read.pages) == 1 else 's'} {read.labels}"


def _which_pages(pages: QLabel) -> QToolButton:
    """Unfolds the list of what was read; it is the tooltip too."""
    pages.hide()
    made = QToolButton(text="Which pages", checkable=True, toolTip=pages.text())
    made.setProperty("kind", "fold")
    made.setAccessibleName("Show or hide the pages that were read")
    made.toggled.connect(pages.setVisible)
    return made
