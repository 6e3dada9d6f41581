"""The sources under an answer: document, page, the words there, and what Pagekeep found when it checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.chat.words import (
    OWN_HELP,
    OWN_WORDS,
    VERIFIED_COLORS,
    VERIFIED_HELP,
    VERIFIED_WORDS,
    page_words,
    source_parts,
)
from app.core.records import StoredCitation, StoredRange
from app.widgets.cards import button, label
from app.widgets.elided import ElidedLabel
from app.widgets.theme import Theme

SHOWN_AT_FIRST = 4
LEAST_NAME = 130
BORNE_OUT = frozenset({"exact", "matched"})  # verdicts that are no warning


class SourceRow(QPushButton):
    """One citation as a button: opens the page at the passage. The verdict is below where there is no room beside.

    `number`: as the answer names it; 0 of what Pagekeep quotes of its own accord, which is no proof of the answer.
    `claim`: what the answer says there, shown where the document has no words for it.
    """

    def __init__(self, theme: Theme, citation: StoredCitation, number: int, claim: str = "") -> None:
        super().__init__()
        self.setProperty("kind", "source")
        self.setAutoDefault(False)
        state = VERIFIED_WORDS[citation.verified] if number else OWN_WORDS
        named = f"Source {number}" if number else "Quoted by Pagekeep"
        self.setAccessibleName(f"{named}: {citation.document}, {page_words(citation)}, {state}")
        self.setToolTip(_tip(citation, VERIFIED_HELP[citation.verified] if number else OWN_HELP))
        self.setEnabled(bool(citation.ranges))
        color = VERIFIED_COLORS[citation.verified] if number else "accent"
        picture = QLabel(pixmap=theme.pixmap(citation.verified if number else "search", color, 16))
        name, page = source_parts(citation, number)
        document = ElidedLabel(name, Qt.TextElideMode.ElideMiddle)
        self._where = label(page, wrap=False)
        verdict = label(state, color if color != "accent" else "muted", wrap=False)
        source, self._checked = QHBoxLayout(), QHBoxLayout()
        source.setSpacing(8)
        source.addWidget(document)
        source.addWidget(self._where)
        source.addStretch(1)
        self._checked.setSpacing(8)
        self._checked.addWidget(picture)
        self._checked.addWidget(verdict)
        words = ElidedLabel(_words(citation, claim))
        words.setProperty("role", "muted")
        words.setVisible(bool(words.text()))
        self._rows = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._rows.setSpacing(8)
        self._rows.addLayout(source, 1)
        self._rows.addLayout(self._checked)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 5, 10, 6)
        column.setSpacing(3)
        column.addLayout(self._rows)
        column.addWidget(words)
        for part in (picture, document, self._where, verdict, words):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._least = LEAST_NAME if page else document.sizeHint().width()
        self._fit(0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit(event.size().width())

    def _fit(self, width: int) -> None:
        beside = self._least + self._where.sizeHint().width() + self._checked.sizeHint().width() + 36
        ways = QBoxLayout.Direction
        self._rows.setDirection(ways.LeftToRight if width >= beside else ways.TopToBottom)
        self._rows.setSpacing(8 if width >= beside else 2)
        self._checked.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.layout().invalidate()  # it does not learn by itself that the rows were turned
        self.setMinimumHeight(self.layout().sizeHint().height() + 2)


class Sources(QWidget):
    """All citations of an answer, the first few at once.

    Signals:
        opened: a source was chosen (argument: StoredCitation).
    """

    opened = Signal(object)

    def __init__(
        self, theme: Theme, citations: Sequence[StoredCitation], numbers: Mapping[int, int], answer: str = ""
    ) -> None:
        super().__init__()
        self.setAccessibleName("Sources")
        self._theme = theme
        self._answer = answer
        self._numbers = numbers
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 4, 0, 2)
        self._layout.setSpacing(4)
        ordered = distinct(citations, numbers)
        for citation in ordered[:SHOWN_AT_FIRST]:
            self._add(citation)
        self._rest = ordered[SHOWN_AT_FIRST:]
        if self._rest:
            self._more = button(f"Show all {len(ordered)} sources", self._show_rest, "flat")
            self._layout.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)

    def _add(self, citation: StoredCitation) -> None:
        claim = self._answer[citation.answer_start : citation.answer_start + citation.answer_count]
        row = SourceRow(self._theme, citation, self._numbers.get(citation.marker, citation.marker), claim)
        row.clicked.connect(lambda: self.opened.emit(citation))
        self._layout.addWidget(row)

    def _show_rest(self) -> None:
        self._more.hide()
        for citation in self._rest:
            self._add(citation)


def distinct(citations: Sequence[StoredCitation], numbers: Mapping[int, int]) -> list[StoredCitation]:
    """One row per marker, pages and verdict, by the numbers shown, and one where the same words are meant.

    What the answer leans on several times is marked together. A warning stays a row of its own: that the same words
    are quoted exactly elsewhere in the answer does not make its claim true. What Pagekeep quotes of its own accord (by
    the number 0) stands by itself: its words are said to stand there exactly so.
    """
    rows: list[StoredCitation] = []
    for citation in sorted(citations, key=lambda c: (numbers.get(c.marker, c.marker), c.answer_start)):
        own = numbers.get(citation.marker) == 0
        place = None if own else next((n for n, row in enumerate(rows) if _alike(row, citation)), None)
        if place is None:
            rows.append(citation)
        else:
            rows[place] = _together(rows[place], citation)
    return rows


def _alike(one: StoredCitation, other: StoredCitation) -> bool:
    if (one.marker, one.document_id) != (other.marker, other.document_id):
        return False
    if one.verified == other.verified and page_words(one) == page_words(other):
        return True
    return {one.verified, other.verified} <= BORNE_OUT and any(_holds(a, b) for a in one.ranges for b in other.ranges)


def _holds(one: StoredRange, other: StoredRange) -> bool:
    """Whether one of the two lies within the other."""
    start, stop = max(one.char_start, other.char_start), min(_end(one), _end(other))
    return one.page_index == other.page_index and stop - start >= min(one.char_count, other.char_count) > 0


def _end(place: StoredRange) -> int:
    return place.char_start + place.char_count


def _together(one: StoredCitation, other: StoredCitation) -> StoredCitation:
    """The longer of two quotes where one holds the other, else both."""
    new = [pair for pair in zip(other.ranges, other.page_labels, strict=False) if pair[0] not in one.ranges]
    short, long = sorted((one.quote, other.quote), key=len)
    return replace(
        one,
        ranges=(*one.ranges, *(part for part, _ in new)),
        page_labels=(*one.page_labels, *(name for _, name in new)),
        quote=long if short in long else f"{one.quote} … {other.quote}",
        verified=min(one.verified, other.verified, key=list(VERIFIED_WORDS).index),
    )


def _words(citation: StoredCitation, claim: str) -> str:
    """`“the words in the document”`; what was claimed where it has none."""
    if citation.quote:
        return f"“{citation.quote}”"
    claim = " ".join(claim.split())
    return f"The answer says: “{claim}”" if claim else ""


def _tip(citation: StoredCitation, help: str) -> str:
    quote = citation.quote if len(citation.quote) < 400 else citation.quote[:400] + "…"
    passage = f"Passage {citation.marker}" if citation.marker else ""
    parts = (help, f"“{quote}”" if quote else "", passage)
    return "\n\n".join(part for part in parts if part)
