"""The Search tab: for each question what was found, where, with which scores, and what of it the model saw.

A query can be tried without the model: it looks where the next question would.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.core.events import TurnPhase
from app.core.lookups import Lookup
from app.core.records import Conversation, Message, MessageId
from app.core.shown_numbers import shown_numbers
from app.search_panel.rows import FoundRow
from app.search_panel.words import count_words, head_words, nothing_words, running_words
from app.services import Services
from app.widgets.cards import button, label
from app.widgets.layouts import clear_layout
from app.widgets.search_field import SearchField
from engine.messages import ConversationId

TRIED = "Tried query"
TRIED_PASSAGES = 10
NOT_SEARCHED = {
    "whole": "The documents were in the context whole; nothing had to be looked up.",
    "survey": "Everything was read part by part; nothing had to be looked up.",
    "none": "Nothing was looked up for this question.",
}
ELSEWHERE = "Another Pagekeep is answering this question. How its documents were read is told with the answer."
UNTOLD = "There is no complete answer to this question, which would tell how its documents were read."


class SearchPanel(QWidget):
    """Signals: opened (a passage was chosen; argument: FoundPassage)."""

    opened = Signal(object)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._conversation: Conversation | None = None
        self._id: ConversationId | None = None
        self._questions: list[Message] = []
        self._answers: dict[MessageId, Message] = {}  # by question
        self._running: dict[ConversationId, TurnPhase] = {}
        self._listed: set[ConversationId] = set()  # the question of the running turn is stored
        self._tried: Lookup | None = None
        self._elsewhere = False
        self._number = 0
        self._stale = False
        self.query = SearchField("Try a query: it is searched, not asked", "Try a query")
        self.query.returnPressed.connect(self._try)
        self.query.left.connect(self.query.clear)
        self.turns = QComboBox()
        self.turns.setAccessibleName("Question")
        self.turns.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.turns.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.turns.setMinimumContentsLength(12)
        self.turns.currentIndexChanged.connect(lambda _: self._draw())
        self._results = QVBoxLayout()
        self._results.setSpacing(6)
        self._lay_out()
        services.theme.changed.connect(self._draw)

    # --- what is shown ----------------------------------------------------------------------------
    def show_conversation(
        self, conversation: ConversationId | None, messages: Sequence[Message], elsewhere: bool = False
    ) -> None:
        """`elsewhere`: another process is answering the last question."""
        self._id, self._tried, self._elsewhere = conversation, None, elsewhere
        self._answers = {q.id: a for q, a in pairwise(messages) if q.role == "user" and a.role == "assistant"}
        self._questions = [message for message in messages if message.role == "user" and message.tokens.ids]
        self.query.clear()
        self._fill()

    def put(self, conversation: Conversation | None) -> None:
        """The conversation whose documents and scope a tried query looks into."""
        self._conversation = conversation

    def show_phase(self, phase: TurnPhase) -> None:
        """What a running turn does is told until it ends."""
        before = self._running.get(phase.conversation)
        self._running[phase.conversation] = phase
        if phase.conversation == self._id and (before is None or before.phase != phase.phase):
            self._draw()

    def end_turn(self, conversation: ConversationId) -> None:
        self._running.pop(conversation, None)
        self._listed.discard(conversation)
        if conversation == self._id:
            self._draw()

    def add_question(self, message: Message) -> None:
        self._listed.add(message.conversation)
        if message.conversation == self._id and message.tokens.ids:
            self._questions = [kept for kept in self._questions if kept.id != message.id]
            self._questions.append(message)
            self._tried = None
            self._fill()

    def add_answer(self, message: Message) -> None:
        if message.conversation == self._id and self._questions and message.report is not None:
            self._answers[self._questions[-1].id] = message
            self._draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._draw()

    # --- trying -----------------------------------------------------------------------------------
    def _try(self) -> None:
        query, conversation = self.query.text().strip(), self._conversation
        if not query or conversation is None:
            return
        self._number += 1
        number, workspace = self._number, self._services.workspace
        documents, scope = conversation.document_ids, conversation.scope
        if not documents and scope is None:
            self._services.tasks.read(
                lambda: workspace.search(query, [int(d.id) for d in workspace.library.documents()], None),
                lambda lookup: self._show_tried(number, lookup),
            )
            return
        self._services.tasks.read(
            lambda: workspace.search(query, documents, scope, TRIED_PASSAGES),
            lambda lookup: self._show_tried(number, lookup),
        )

    def _show_tried(self, number: int, lookup: Lookup) -> None:
        if number == self._number:
            self._tried = lookup
            self._fill()

    # --- drawing ----------------------------------------------------------------------------------
    def _fill(self) -> None:
        """The newest question is chosen, or the query that was tried."""
        self.turns.blockSignals(True)
        self.turns.clear()
        if self._tried is not None:
            self.turns.addItem(f"{TRIED}: {self._tried.query}", None)
        for number in range(len(self._questions), 0, -1):
            message = self._questions[number - 1]
            self.turns.addItem(f"{number}  {' '.join(message.text.split())[:120]}", message)
        self.turns.setCurrentIndex(0)
        self.turns.setVisible(self.turns.count() > 0)
        self.turns.blockSignals(False)
        self._draw()

    def _draw(self) -> None:
        self._stale = not self.isVisible()
        if self._stale:
            return
        clear_layout(self._results)
        message = self.turns.currentData()
        tried = message is None and self._tried is not None
        lookup = self._tried if tried else message.lookup if isinstance(message, Message) else None
        if waiting := self._running_words(False):
            self._results.addWidget(label(waiting, "muted"))
        if lookup is not None:
            self._show(lookup, tried, self._answers.get(message.id) if isinstance(message, Message) else None)
        elif isinstance(message, Message):
            self._results.addWidget(label(self._why_none(message), "muted"))
        else:
            hint = "What is found for a question is shown here: which pages, why, and what the model saw of it."
            self._results.addWidget(label(hint, "muted"))

    def _running_words(self, listed: bool) -> str:
        """Of the turn that runs here, if its question is in the list (`listed`), or is not yet; else ""."""
        phase = self._running.get(self._id) if self._id is not None else None
        return running_words(phase, listed) if phase is not None and (self._id in self._listed) == listed else ""

    def _why_none(self, question: Message) -> str:
        newest = question is self._questions[-1]
        running = self._running_words(True) or (ELSEWHERE if self._elsewhere else "") if newest else ""
        answer = self._answers.get(question.id)
        if running or answer is None or answer.report is None:
            return running or UNTOLD
        return NOT_SEARCHED.get(answer.report.mode, NOT_SEARCHED["none"])

    def _show(self, lookup: Lookup, tried: bool, answer: Message | None) -> None:
        """`answer`: passages have the numbers that the reader sees in it; without one they have none."""
        for line in head_words(lookup):
            self._results.addWidget(label(line, "muted"))
        if not lookup.passages:
            self._results.addWidget(label(nothing_words(lookup)))
            return
        if not tried:
            self._results.addWidget(label(count_words(lookup), "muted"))
        shown = shown_numbers(answer.text, answer.citations) if answer else {}
        for number, found in enumerate(lookup.passages, 1):
            row = FoundRow(self._services.theme, found, number, tried, shown.get(found.marker))
            row.clicked.connect(lambda _=False, found=found: self.opened.emit(found))
            self._results.addWidget(row)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self.query, 1)
        head.addWidget(button("Search", self._try))
        page = QWidget()
        page.setObjectName("page")
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 4, 14, 14)
        column.addLayout(self._results)
        column.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(page)
        top = QVBoxLayout()
        top.setContentsMargins(14, 12, 14, 4)
        top.setSpacing(8)
        top.addLayout(head)
        top.addWidget(self.turns)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addWidget(scroll, 1)
