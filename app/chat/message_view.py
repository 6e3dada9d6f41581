"""One message of the transcript: a question in a bubble, or an answer with sources and what it cost."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QGraphicsOpacityEffect, QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from app.chat.coverage import CoverageNote
from app.chat.markdown import mark_citations
from app.chat.progress import PhaseView
from app.chat.rich_text import BlockView, RichText
from app.chat.sources import Sources
from app.chat.stream import BlockStream, Change
from app.chat.thought import ThoughtView
from app.chat.words import NO_DOCUMENT, doubt_words, report_line, saved_words, state_words
from app.core.borne_out import PAGES_SAY, REPEATS, not_borne_out
from app.core.errors import UserError
from app.core.events import TurnPhase
from app.core.records import Message, TurnReport
from app.core.shown_numbers import renumbered, shown_numbers
from app.widgets.cards import ErrorCard, button, label
from app.widgets.format import plural
from app.widgets.layouts import Beside, clear_layout
from app.widgets.theme import Theme

DIMMED = 0.5
LEAST_LINE = 280  # pixels for what an answer cost, beside its buttons
LONGEST_SHOWN = 3000  # characters of a question; the rest is said in numbers


class QuestionView(QWidget):
    """A question, as it was typed; of a very long one the beginning.

    Signals:
        menu_wanted: what can be done with it (arguments: the view, a point on the screen).
    """

    menu_wanted = Signal(object, QPoint)

    def __init__(self, theme: Theme, message: Message) -> None:
        super().__init__()
        self.message = message
        self.setAccessibleName(f"You: {message.text[:LONGEST_SHOWN]}")
        bubble = QWidget()
        bubble.setObjectName("bubble")
        bubble.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        text = RichText(theme)
        shown, hidden = message.text[:LONGEST_SHOWN], len(message.text) - LONGEST_SHOWN
        text.setPlainText(shown if hidden <= 0 else f"{shown}…")
        natural = max(text.fontMetrics().horizontalAdvance(line) for line in shown.split("\n"))
        bubble.setMaximumWidth(max(natural + 31, 260 if hidden > 0 else 0))
        inside = QVBoxLayout(bubble)
        inside.setContentsMargins(14, 9, 14, 9)
        inside.addWidget(text)
        if hidden > 0:
            inside.addWidget(label(f"and {plural(hidden, 'character')} more", "muted"))
            copy = button("Copy the question", lambda: QGuiApplication.clipboard().setText(message.text))
            inside.addWidget(copy, 0, Qt.AlignmentFlag.AlignLeft)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 6, 0, 6)
        layout.addStretch(1)
        self.more = more_button(theme, "What can be done with this question", self)
        layout.addWidget(self.more, 0, Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(bubble, 5)
        dim(self, not message.in_context)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_wanted.emit(self, event.globalPos())


class AnswerView(QWidget):
    """An answer: complete, partial, or being written.

    Signals:
        opened: a source or citation mark was chosen (argument: StoredCitation).
        link: another link was chosen (argument: address).
        regenerate, go_on: the reader asked for another answer, or for the rest of this one.
        read_rest: the reader wants the pages read that this answer does not rest on.
        menu_wanted: as QuestionView.menu_wanted.
    """

    opened = Signal(object)
    link = Signal(str)
    regenerate = Signal()
    go_on = Signal()
    read_rest = Signal()
    menu_wanted = Signal(object, QPoint)

    def __init__(self, theme: Theme, message: Message, is_last: bool = False) -> None:
        super().__init__()
        self.message = message
        self._theme = theme
        self._blocks: list[BlockView] = []
        self._stream = BlockStream()
        self._elsewhere = False
        self._phase: PhaseView | None = None
        self.thought = ThoughtView(theme)
        self._column = QVBoxLayout()
        self._column.setSpacing(7)
        self._foot = QVBoxLayout()
        self._foot.setSpacing(4)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 10)
        layout.setSpacing(2)
        layout.addWidget(self.thought)
        layout.addLayout(self._column)
        layout.addLayout(self._foot)
        self.setAccessibleName("Answer")
        self._show_text(message)
        self._show_foot(message, is_last)
        dim(self, not message.in_context)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self._phase is None:
            self.menu_wanted.emit(self, event.globalPos())

    # --- a running answer -------------------------------------------------------------------------
    def begin(self) -> None:
        """From here on the text grows."""
        clear_layout(self._foot)
        self._stream = BlockStream(self._stream.text)
        self._change(self._stream.tail())
        self._phase = PhaseView()
        self._foot.addWidget(self._phase)

    def show_phase(self, phase: TurnPhase) -> None:
        if self._phase is not None:
            written = self._stream.text or self.thought.text
            self._phase.setVisible(phase.phase != "answering" or not written)
            self._phase.show_phase(phase)

    def think(self, delta: str) -> None:
        self.thought.append(delta)
        if self._phase is not None:
            self._phase.hide()

    def append(self, delta: str) -> None:
        self.thought.end()
        self._change(self._stream.append(delta))
        if self._phase is not None:
            self._phase.hide()

    def finish(self, message: Message, is_last: bool = True) -> None:
        self.message = message
        self._phase = None
        self._show_text(message)
        self._show_foot(message, is_last)
        self.setAccessibleName(f"Answer: {renumbered(message.text, message.citations)[:400]}")

    def fail(self, error: UserError, retry: Callable[[], object] | None) -> None:
        self._phase = None
        clear_layout(self._foot)
        card = ErrorCard(self._theme, error)
        if retry is not None:
            card.add_button("Try again", retry)
        self._foot.addWidget(card)

    def text(self) -> str:
        return self._stream.text

    def grow(self, message: Message) -> None:
        """As far as another process has stored it."""
        self.message = message
        self._show_text(message)

    def set_last(self, is_last: bool, elsewhere: bool = False) -> None:
        """Only the newest answer offers to be regenerated or continued, and not while another process writes it."""
        self._elsewhere = elsewhere
        if self._phase is None:
            self._show_foot(self.message, is_last)

    # --- parts ------------------------------------------------------------------------------------
    def _show_text(self, message: Message) -> None:
        self.thought.show_thought(message.reasoning, message.thought_ms / 1000)
        numbers = shown_numbers(message.text, message.citations)
        self._stream = BlockStream(mark_citations(message.text, message.citations), numbers)
        self._change(self._stream.tail())

    def _change(self, change: Change) -> None:
        for place, block in enumerate(change.blocks, start=change.first):
            if place < len(self._blocks) and self._blocks[place].takes(block):
                self._blocks[place].show_block(block)
            else:
                self._cut(place)
                view = BlockView(self._theme, block)
                view.link.connect(self._follow)
                self._blocks.append(view)
                self._column.addWidget(view)
        self._cut(change.first + len(change.blocks))

    def _cut(self, place: int) -> None:
        for view in self._blocks[place:]:
            view.hide()
            view.deleteLater()
        del self._blocks[place:]

    def _show_foot(self, message: Message, is_last: bool) -> None:
        clear_layout(self._foot)
        if message.citations:
            numbers = shown_numbers(message.text, message.citations)
            self._add_sources(Sources(self._theme, message.citations, numbers, message.text))
        if unsupported := not_borne_out(message):
            self._foot.addWidget(label(unsupported, "muted"))
        if message.report is not None:
            self._show_findings(message.report, is_last)
        if doubt := doubt_words(message, is_last):
            self._foot.addWidget(label(doubt, "warn"))
            if is_last and not self._elsewhere:
                self._foot.addWidget(button("Answer again", self.regenerate.emit), 0, Qt.AlignmentFlag.AlignLeft)
        if unfinished := state_words(message, self._elsewhere):
            self._foot.addWidget(label(unfinished, "muted" if self._elsewhere else "warn"))
        self._show_actions(message, is_last, bool(unfinished))

    def _add_sources(self, sources: Sources) -> None:
        sources.opened.connect(self.opened)
        self._foot.addWidget(sources)

    def _show_findings(self, report: TurnReport, is_last: bool) -> None:
        """What Pagekeep itself found: on what the answer rests, that it repeats another, what the pages say."""
        if report.mode == "none" and not report.pages_in_context:
            self._foot.addWidget(label(NO_DOCUMENT, "muted"))
        if report.repeats:
            self._foot.addWidget(label(REPEATS, "warn"))
        if quoted := report.pages_say:
            self._foot.addWidget(label(PAGES_SAY, "muted"))
            pages = Sources(self._theme, quoted, dict.fromkeys((one.marker for one in quoted), 0))
            pages.setAccessibleName(PAGES_SAY)
            self._add_sources(pages)
        if report.coverage:
            note = CoverageNote(report, is_last)
            note.read_rest.connect(self.read_rest)
            self._foot.addWidget(note)

    def _show_actions(self, message: Message, is_last: bool, unfinished: bool) -> None:
        row = self._actions(message, is_last and not self._elsewhere, unfinished)
        row.addStretch(1)
        if message.report is None:
            self._foot.addLayout(row)
            return
        words = (report_line(message.report), saved_words(message.report))
        line = label(", ".join(part for part in words if part), "muted")
        self._foot.addWidget(Beside(row, line, LEAST_LINE))

    def _actions(self, message: Message, is_last: bool, unfinished: bool) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        if is_last and unfinished:
            row.addWidget(button("Continue", self.go_on.emit))
        row.addWidget(self._tool("copy", "Copy the answer", self._copy))
        if is_last:
            told = message.report is not None and message.report.mode == "catalogue"
            again = "Ask the model instead (Ctrl+R)" if told else "Answer again (Ctrl+R)"
            row.addWidget(self._tool("regenerate", again, self.regenerate.emit))
        row.addWidget(more_button(self._theme, "What can be done with this answer", self))
        return row

    def _tool(self, icon: str, tip: str, clicked: Callable[[], object]) -> QToolButton:
        made = QToolButton(icon=self._theme.icon(icon), toolTip=tip, iconSize=QSize(16, 16))
        made.setAccessibleName(tip)
        made.clicked.connect(lambda: clicked())
        return made

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(renumbered(self.message.text, self.message.citations) or self._stream.text)

    def _follow(self, address: str) -> None:
        if not address.startswith("cite:"):
            self.link.emit(address)
            return
        named = [citation for citation in self.message.citations if str(citation.marker) == address[5:]]
        if named:  # a quote that stands nowhere may name the same passage
            self.opened.emit(next((citation for citation in named if citation.ranges), named[0]))


def more_button(theme: Theme, tip: str, view: QuestionView | AnswerView) -> QToolButton:
    made = QToolButton(icon=theme.icon("more", "faint"), toolTip=tip, iconSize=QSize(16, 16))
    made.setAccessibleName(tip)
    made.clicked.connect(lambda: view.menu_wanted.emit(view, made.mapToGlobal(made.rect().bottomLeft())))
    return made


def dim(view: QWidget, dimmed: bool) -> None:
    """What has left the model's context is there to be read, and looks it."""
    if dimmed:
        effect = QGraphicsOpacityEffect(view)
        effect.setOpacity(DIMMED)
        view.setGraphicsEffect(effect)
    else:
        view.setGraphicsEffect(None)
