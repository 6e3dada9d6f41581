"""The Cache tab: tokens and bytes by tier, sharing, saving, and the price of losing it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.cache_panel.account import account_lines, memory_parts
from app.cache_panel.legend import Legend
from app.cache_panel.numbers import byte_parts, dropped_words, headline, token_parts, turn_words, values
from app.cache_panel.operations import OperationLog
from app.cache_panel.page_map import MapArea
from app.core.errors import as_user_error
from app.core.records import Message
from app.services import Services
from app.widgets.bars import StackBar
from app.widgets.cards import EmptyState, button, label
from app.widgets.flow import FlowLayout
from app.widgets.layouts import fill_panel
from engine.messages import ConversationId, EngineStats, StateReport

_ROWS = (
    "Tokens",
    "In memory",
    "On disk only",
    "Must be read",
    "Not saved yet",
    "Last saved",
    "Shared",
    "To rebuild",
)
_HELP = {
    "Tokens": "Tokens of this conversation, documents included",
    "In memory": "Ready at once",
    "On disk only": "Comes back in moments, without reading",
    "Must be read": "Would go through the model again",
    "Not saved yet": "Would have to be read again after a crash",
    "Shared": "Other conversations use the same state; it is kept once",
    "To rebuild": "Reading everything again would take this long here",
}


class CachePanel(QWidget):
    """Signals: fork_wanted (the reader wants a copy that shares this state)."""

    fork_wanted = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._conversation: ConversationId | None = None
        self._report: StateReport | None = None
        self._values = {name: label("–") for name in _ROWS}
        self._pages = MapArea(services.theme)
        self._legend = Legend(services.theme)
        self._turn = label("")
        self._memory = StackBar(services.theme)
        self._account = QGridLayout()
        self._log = OperationLog(services)
        self._pin = button("Pin", self.pin, tip="Never evict it: stays in memory when idle, and on disk")
        self._tokens = StackBar(services.theme)
        self._bytes = StackBar(services.theme)
        self._headline = label("", "title")
        self._stack = QStackedWidget()
        self._dropping: tuple[int, bool] | None = None  # request of the report that tells what is left; disk
        self._refresh = QTimer(self, singleShot=True, interval=120)
        self._refresh.timeout.connect(self._ask)
        self._lay_out()

    def show_conversation(self, conversation: ConversationId | None) -> None:
        if conversation != self._conversation:
            self._conversation, self._report, self._dropping = conversation, None, None
            self.show_turn(None)
            self._stack.setCurrentIndex(0)
        self.refresh()

    def refresh(self) -> None:
        """Asks for new numbers; many calls in a row ask once."""
        if self._conversation is not None:
            self._refresh.start()

    def show_state(self, report: StateReport) -> None:
        self._tell_dropped(report)
        if report.conversation != self._conversation:
            return
        self._report = report
        self._stack.setCurrentIndex(1 if report.tokens else 0)
        self._headline.setText(headline(report))
        self._tokens.show_parts(token_parts(report), report.tokens)
        self._bytes.show_parts(byte_parts(report))
        self._pages.show_pages(report)
        self._legend.show_kinds(report)
        self._pin.setText("Unpin" if report.pinned else "Pin")
        for name, value in values(report).items():
            self._values[name].setText(value)
            self._values[name].setAccessibleName(f"{name}: {value}")
        self._log.read(report.conversation)

    def show_turn(self, message: Message | None) -> None:
        """What the last turn reused and read again, and why. `message`: its answer."""
        self._turn.setText(turn_words(message))

    def show_stats(self, stats: EngineStats) -> None:
        self._memory.show_parts(memory_parts(stats))
        for row, (name, value) in enumerate(account_lines(stats)):
            if self._account.itemAtPosition(row, 0) is None:
                self._account.addWidget(label(name, "muted", wrap=False), row, 0)
                self._account.addWidget(label(""), row, 1)
            self._account.itemAtPosition(row, 1).widget().setText(value)

    # --- actions ----------------------------------------------------------------------------------
    def save(self) -> None:
        self._do(self._services.workspace.states.save, "Saving this conversation's state.")

    def pin(self) -> None:
        pinned = not (self._report is not None and self._report.pinned)
        said = "It stays, whatever the budget." if pinned else "It may be evicted again."
        self._do(lambda id: self._services.workspace.states.pin(id, pinned), said)

    def drop(self, disk: bool) -> None:
        """What is said comes from the report that follows."""
        conversation, workspace = self._conversation, self._services.workspace
        if conversation is None:
            return

        def work() -> int:
            workspace.states.drop(conversation, disk=disk)
            return workspace.states.request(conversation)

        self._services.tasks.write(work, lambda request: self._await_report(request, disk), self._failed)

    def _await_report(self, request: int, disk: bool) -> None:
        self._dropping = (request, disk)
        if self._report is not None:
            self._tell_dropped(self._report)

    def _tell_dropped(self, report: StateReport) -> None:
        awaited = self._dropping
        if awaited is not None and report.conversation == self._conversation and report.request >= awaited[0]:
            self._dropping = None
            self._services.toasts.say(dropped_words(report, awaited[1]))

    def _do(self, act: Callable[[ConversationId], object], said: str) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        self._services.tasks.write(lambda: act(conversation), lambda _: self._services.toasts.say(said), self._failed)
        QTimer.singleShot(400, self, self.refresh)

    def _ask(self) -> None:
        conversation, workspace = self._conversation, self._services.workspace
        if conversation is not None:
            self._services.tasks.read(lambda: workspace.states.request(conversation), None, lambda _: None)

    def _failed(self, error: Exception) -> None:
        told = as_user_error(error)
        self._services.toasts.say(f"{told.what} {told.why}")

    # --- building ---------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        empty = EmptyState(
            self._services.theme,
            "memory",
            "No state yet",
            "After the first question this shows what the model keeps of this conversation, and where.",
        )
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(18, 16, 18, 16)
        column.setSpacing(10)
        column.addWidget(self._headline)
        for name, bar in (("Tokens", self._tokens), ("Size by tier", self._bytes)):
            column.addWidget(label(name, "section"))
            column.addWidget(bar)
        column.addWidget(label("Pages", "section"))
        column.addWidget(self._pages)
        column.addWidget(self._legend)
        column.addSpacing(4)
        column.addLayout(self._grid())
        column.addSpacing(6)
        column.addWidget(self._buttons())
        column.addSpacing(6)
        column.addWidget(label("Last turn", "section"))
        column.addWidget(self._turn)
        column.addSpacing(6)
        column.addWidget(label("Memory, all conversations", "section"))
        column.addWidget(self._memory)
        self._account.setHorizontalSpacing(18)
        self._account.setColumnStretch(1, 1)
        column.addLayout(self._account)
        column.addSpacing(6)
        column.addWidget(label("Operations", "section"))
        column.addWidget(self._log)
        column.addStretch(1)
        fill_panel(self, self._stack, empty, page)

    def _grid(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(18)
        grid.setVerticalSpacing(7)
        grid.setColumnStretch(1, 1)
        for row, name in enumerate(_ROWS):
            title = label(name, "muted", wrap=False)
            title.setToolTip(_HELP.get(name, ""))
            self._values[name].setToolTip(_HELP.get(name, ""))
            grid.addWidget(title, row, 0)
            grid.addWidget(self._values[name], row, 1)
        return grid

    def _buttons(self) -> QWidget:
        made = QWidget()
        row = FlowLayout(made, 8)
        row.addWidget(button("Save now", self.save, tip="Write what is not on disk yet"))
        row.addWidget(button("Free memory", lambda: self.drop(False), tip="The state stays on disk"))
        row.addWidget(
            button("Drop", lambda: self.drop(True), tip="Delete what no other conversation uses; the text stays")
        )
        row.addWidget(self._pin)
        row.addWidget(button("Fork", self.fork_wanted.emit, tip="A copy of the conversation that shares this state"))
        return made
