"""The Timing tab: one card per turn, newest first, with bars and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.core.records import Message, TurnReport
from app.services import Services
from app.timing_panel.numbers import HELP, as_json, lines, time_parts, token_parts, total_ms
from app.widgets.bars import StackBar
from app.widgets.cards import EmptyState, button, label
from app.widgets.elided import ElidedLabel
from app.widgets.format import duration
from app.widgets.layouts import clear_layout, fill_panel
from app.widgets.theme import Theme
from engine.messages import ConversationId

CARDS_AT_ONCE = 12


class TurnCard(QWidget):
    def __init__(self, theme: Theme, number: int, question: str, message: Message, report: TurnReport) -> None:
        super().__init__()
        self.setObjectName("card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(f"Turn {number}, {duration(total_ms(report) / 1000)}")
        self._message = message
        head = QHBoxLayout()
        title = ElidedLabel(f"{number}  {' '.join(question.split())}")
        title.setProperty("role", "title")
        head.addWidget(title, 1)
        head.addWidget(label(duration(total_ms(report) / 1000), "muted", wrap=False))
        copy = QToolButton(icon=theme.icon("copy"), iconSize=QSize(15, 15), toolTip="Copy as JSON")
        copy.setAccessibleName("Copy this turn as JSON")
        copy.clicked.connect(self._copy)
        head.addWidget(copy)
        times, tokens = StackBar(theme), StackBar(theme)
        times.show_parts(time_parts(report))
        tokens.show_parts(token_parts(report), report.tokens.prompt)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 12, 14, 12)
        layout.setSpacing(8)
        layout.addLayout(head)
        layout.addWidget(times)
        layout.addWidget(label(f"Prompt: {report.tokens.prompt:,} tokens", "muted"))
        layout.addWidget(tokens)
        layout.addLayout(self._numbers(report))

    def _numbers(self, report: TurnReport) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        for row, (name, value) in enumerate(lines(report)):
            for column, made in enumerate((label(name, "muted", wrap=False), label(value))):
                made.setToolTip(HELP.get(name, ""))
                grid.addWidget(made, row, column, Qt.AlignmentFlag.AlignTop)
        return grid

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(as_json([self._message]))


class TimingPanel(QWidget):
    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._conversation: ConversationId | None = None
        self._messages: list[Message] = []
        self._shown = CARDS_AT_ONCE
        self._stale = False
        self._cards = QVBoxLayout()
        self._cards.setSpacing(10)
        self._stack = QStackedWidget()
        self._lay_out()
        services.theme.changed.connect(self._redraw)

    def show_conversation(self, conversation: ConversationId | None, messages: Sequence[Message]) -> None:
        self._conversation, self._messages = conversation, list(messages)
        self._shown = CARDS_AT_ONCE
        self._redraw()

    def add(self, message: Message) -> None:
        """An answer of the shown conversation is complete."""
        if message.conversation == self._conversation:
            self._messages = [kept for kept in self._messages if kept.id != message.id]
            self._messages.append(message)
            self._redraw()

    def add_question(self, message: Message) -> None:
        if message.conversation == self._conversation:
            self._messages = [kept for kept in self._messages if kept.id != message.id]
            self._messages.append(message)

    def copy_all(self) -> None:
        QGuiApplication.clipboard().setText(as_json(self._messages))
        self._services.toasts.say("Timings copied as JSON.")

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._redraw()

    def _redraw(self) -> None:
        """Cards are only built while they can be seen."""
        self._stale = not self.isVisible()
        if self._stale:
            return
        clear_layout(self._cards)
        turns = self._turns()
        self._stack.setCurrentIndex(1 if turns else 0)
        for number, question, message in reversed(turns[-self._shown :]):
            if message.report is not None:
                self._cards.addWidget(TurnCard(self._services.theme, number, question, message, message.report))
        if len(turns) > self._shown:
            self._cards.addWidget(button("Show older turns", self._show_more, "flat"))

    def _turns(self) -> list[tuple[int, str, Message]]:
        turns, question = [], ""
        for message in self._messages:
            if message.role == "user":
                question = message.text
            elif message.report is not None:
                turns.append((len(turns) + 1, question, message))
        return turns

    def _show_more(self) -> None:
        self._shown += CARDS_AT_ONCE
        self._redraw()

    def _lay_out(self) -> None:
        theme = self._services.theme
        empty = EmptyState(theme, "info", "No turns yet", "After the first answer this shows where its time went.")
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(14, 12, 14, 14)
        head = QHBoxLayout()
        head.addWidget(label("Turns, newest first", "section"), 1)
        head.addWidget(button("Copy all", self.copy_all, "flat", "All turns as JSON"))
        column.addLayout(head)
        column.addLayout(self._cards)
        column.addStretch(1)
        fill_panel(self, self._stack, empty, page)
