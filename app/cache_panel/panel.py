"""The Cache tab: tokens and bytes by tier, sharing, saving, and the price of losing it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.core.errors import as_user_error
from app.services import Services
from app.widgets.bars import Part, StackBar
from app.widgets.cards import EmptyState, button, label
from app.widgets.flow import FlowLayout
from app.widgets.format import about, ago, count, plural, size
from engine.messages import ConversationId, StateReport

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
LAST_SAMPLED = 1  # the last token of an answer has no state until the next turn
_HELP = {
    "Tokens": "Tokens of this conversation, documents included",
    "In memory": "Ready at once",
    "On disk only": "Comes back in moments, without reading",
    "Must be read": "Would go through the model again",
    "Not saved yet": "Would have to be read again after a crash",
    "Shared": "Other conversations use the same state; it is kept once",
    "To rebuild": "Reading everything again would take this long here",
}


def token_parts(report: StateReport) -> list[Part]:
    missing = missing_tokens(report)
    return [
        Part("in memory", report.tokens_memory, count(report.tokens_memory), "bar_restore"),
        Part("on disk", report.tokens_disk_only, count(report.tokens_disk_only), "bar_decode"),
        Part("must be read", missing, count(missing), "bar_prefill"),
    ]


def byte_parts(report: StateReport) -> list[Part]:
    return [
        Part("memory", report.bytes_memory, size(report.bytes_memory), "bar_restore"),
        Part("disk", report.bytes_disk, size(report.bytes_disk), "bar_decode"),
    ]


def missing_tokens(report: StateReport) -> int:
    """Tokens that go through the model again; the last sampled one is new work in any case."""
    missing = report.tokens - report.tokens_memory - report.tokens_disk_only
    return missing if missing > LAST_SAMPLED else 0


def dropped_words(report: StateReport, disk: bool) -> str:
    """What is left after memory was freed or, with `disk`, the state was dropped, and why."""
    left = report.tokens_memory + (report.tokens_disk_only if disk else 0)
    others = "other conversations" if report.shared_with else "documents read ahead or other conversations"
    kept = f"{plural(left, 'token')} {'is' if left == 1 else 'are'} shared with {others}"
    if disk:
        return f"Dropped. {kept} and stay." if left else "Dropped from memory and disk. The text stays."
    if left:
        return f"Memory freed where it could be. {kept} and stay in memory."
    return "Memory freed. The state comes back from disk." if report.tokens_disk_only else "Memory freed."


def values(report: StateReport) -> dict[str, str]:
    others = len(report.shared_with)
    shared = (
        f"{size(report.bytes_shared)} with {plural(others, 'other conversation')}" if others else "with none"
    )
    return {
        "Tokens": count(report.tokens),
        "In memory": count(report.tokens_memory),
        "On disk only": count(report.tokens_disk_only),
        "Must be read": count(missing_tokens(report)) if missing_tokens(report) else "nothing",
        "Not saved yet": count(report.tokens_unsaved),
        "Last saved": ago(report.last_saved) if report.last_saved is not None else "never",
        "Shared": shared,
        "To rebuild": about(report.rebuild_seconds) if report.rebuild_seconds > 0 else "not measured yet",
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
        for name, value in values(report).items():
            self._values[name].setText(value)
            self._values[name].setAccessibleName(f"{name}: {value}")

    # --- actions ----------------------------------------------------------------------------------
    def save(self) -> None:
        self._do(self._services.workspace.save_state, "Saving this conversation's state.")

    def drop(self, disk: bool) -> None:
        """What is said comes from the report that follows."""
        conversation, workspace = self._conversation, self._services.workspace
        if conversation is None:
            return

        def work() -> int:
            workspace.drop_state(conversation, disk=disk)
            return workspace.request_state(conversation)

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
        self._services.tasks.write(
            lambda: act(conversation), lambda _: self._services.toasts.say(said), self._failed
        )
        QTimer.singleShot(400, self, self.refresh)

    def _ask(self) -> None:
        conversation, workspace = self._conversation, self._services.workspace
        if conversation is not None:
            self._services.tasks.read(lambda: workspace.request_state(conversation), None, lambda _: None)

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
        column.addSpacing(4)
        column.addLayout(self._grid())
        column.addSpacing(6)
        column.addWidget(self._buttons())
        column.addStretch(1)
        scroll = QScrollArea(widgetResizable=True)
        page.setObjectName("page")
        scroll.setWidget(page)
        self._stack.addWidget(empty)
        self._stack.addWidget(scroll)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._stack)

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
            button(
                "Drop", lambda: self.drop(True), tip="Delete what no other conversation uses; the text stays"
            )
        )
        row.addWidget(
            button("Fork", self.fork_wanted.emit, tip="A copy of the conversation that shares this state")
        )
        return made


def headline(report: StateReport) -> str:
    missing = missing_tokens(report)
    if not missing:
        where = "in memory" if not report.tokens_disk_only else "kept; part of it comes back from disk"
        return f"Everything is {where}. Nothing will be read again."
    wait = report.rebuild_seconds * missing / report.tokens if report.tokens else 0.0
    cost = f", {about(wait)}" if wait > 0 else ""
    return f"{plural(missing, 'token')} must be read on return{cost}."
