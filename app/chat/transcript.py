"""The messages of one conversation, newest at the bottom.

Only the newest messages become widgets at once; older ones follow in idle time and when the reader scrolls
up, without moving what is on the screen. The view follows the newest text only while it is at the bottom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.chat.live import PENDING_QUESTION
from app.chat.message_view import AnswerView, QuestionView
from app.core.errors import UserError
from app.core.events import Part, TurnPhase
from app.core.records import Message, MessageId
from app.core.shown_numbers import renumbered
from app.widgets.announce import announce
from app.widgets.cards import button, label
from app.widgets.format import plural
from app.widgets.theme import Theme

COLUMN_WIDTH = 820
AT_ONCE = 4
IN_IDLE_TIME = 24
AT_BOTTOM = 6


class Transcript(QScrollArea):
    """Signals: those of AnswerView, for the newest answer; menu_wanted: for all messages; bring_back: the turns that
    left the context last are wanted in it again.
    """

    opened = Signal(object)
    link = Signal(str)
    regenerate = Signal()
    go_on = Signal()
    read_rest = Signal()
    menu_wanted = Signal(object, QPoint)
    bring_back = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._views: list[QuestionView | AnswerView] = []
        self._older: list[Message] = []
        self._live: AnswerView | None = None
        self._elsewhere = False
        self._following = True
        self._from_bottom: int | None = None
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Conversation")
        self._page = QWidget()
        self._page.setObjectName("page")
        self._column = QVBoxLayout(self._page)
        self._column.setSpacing(4)
        self._column.addStretch(1)
        self.setWidget(self._page)
        self._left = QWidget()
        self._left_words = label("", "muted")
        row = QHBoxLayout(self._left)
        row.addWidget(self._left_words, 1)
        row.addWidget(button("Bring back", self.bring_back.emit, "flat", "Into the context again; it may be full then"))
        self._left.hide()
        self._column.insertWidget(0, self._left)
        self._jump = QPushButton("Newest", self, icon=theme.icon("down"))
        self._jump.setToolTip("Jump to the newest message (Ctrl+End)")
        self._jump.clicked.connect(self.jump_to_newest)
        self._jump.hide()
        self._idle = QTimer(self, interval=0)
        self._idle.timeout.connect(self._add_older)
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._keep_place)
        bar.valueChanged.connect(self._scrolled)
        theme.changed.connect(self._redraw)

    # --- content ----------------------------------------------------------------------------------
    def show_messages(self, messages: Sequence[Message], elsewhere: bool = False) -> None:
        """Replaces everything; the newest is in view. `elsewhere`: another process is writing the last answer."""
        self._clear()
        self._elsewhere = elsewhere
        self._following, self._from_bottom = True, None
        split = max(0, len(messages) - AT_ONCE)
        self._older = list(messages[:split])
        for message in messages[split:]:
            self._append(self._make(message))
        self._mark_last()
        self._show_left(messages)
        if self._older:
            self._idle.start()

    def grow(self, message: Message) -> None:
        """What another process has stored of the answer that it writes."""
        for view in self._views[-1:]:
            if isinstance(view, AnswerView) and view.message.id == message.id:
                view.grow(message)

    def add_question(self, message: Message) -> None:
        self._append(self._make(message))
        self.jump_to_newest()

    def confirm_question(self, message: Message) -> None:
        """The stored question takes the place of the one that was shown when it was sent."""
        for view in reversed(self._views):
            if isinstance(view, QuestionView):
                if view.message.id == PENDING_QUESTION or view.message.id == message.id:
                    view.message = message
                    return
                break
        self._append(self._make(message))

    def begin_answer(self, message: Message, text: str = "", reasoning: str = "") -> None:
        """A running answer with its text so far; it replaces an answer to the same question."""
        last = self._views[-1] if self._views else None
        if isinstance(last, AnswerView):
            self._remove(last)
        self._live = self._connected(AnswerView(self._theme, replace(message, text=text, reasoning=reasoning)))
        self._append(self._live)
        self._mark_last(none=True)
        self._live.begin()
        self.jump_to_newest()

    def show_phase(self, phase: TurnPhase) -> None:
        if self._live is not None:
            self._live.show_phase(phase)

    def append_text(self, delta: str, part: Part = "answer") -> None:
        if self._live is not None:
            (self._live.think if part == "reasoning" else self._live.append)(delta)

    def finish(self, message: Message) -> None:
        if self._live is not None:
            self._live.finish(message)
            self._live = None
            announce(self, f"Answer: {renumbered(message.text, message.citations)}")

    def fail(self, message: Message, error: UserError, retry: Callable[[], object]) -> None:
        """The answer as far as it came, with the reason below it."""
        if self._live is not None:
            self._live.finish(message)
            self._live.fail(error, retry)
            self._live = None

    def cut_from(self, message: MessageId) -> None:
        """Takes that message and all behind it off the screen."""
        places = [place for place, view in enumerate(self._views) if view.message.id == message]
        for view in self._views[places[0] :] if places else []:
            self._remove(view)

    def message_before(self) -> Message | None:
        """The newest question on the screen."""
        asked = [view.message for view in self._views if isinstance(view, QuestionView)]
        return asked[-1] if asked else None

    def is_last(self, view: QuestionView | AnswerView) -> bool:
        """Nothing is asked behind it."""
        behind = self._views[self._views.index(view) + 1 :]
        return not any(isinstance(later, QuestionView) for later in behind)

    @property
    def is_empty(self) -> bool:
        return not self._views and not self._older

    def messages(self) -> tuple[Message, ...]:
        """All that are shown, those that are no widgets yet included."""
        return (*self._older, *(view.message for view in self._views))

    @property
    def last_question(self) -> str:
        asked = [view.message.text for view in self._views if isinstance(view, QuestionView)]
        return asked[-1] if asked else ""

    @property
    def answers(self) -> list[AnswerView]:
        return [view for view in self._views if isinstance(view, AnswerView)]

    # --- place ------------------------------------------------------------------------------------
    def place(self) -> int | None:
        """Distance of the view from the bottom, None while it follows the newest text."""
        bar = self.verticalScrollBar()
        return None if self._following else bar.maximum() - bar.value()

    def restore_place(self, from_bottom: int | None) -> None:
        self._following = from_bottom is None
        self._from_bottom = from_bottom
        while self._older and from_bottom is not None and len(self._views) < IN_IDLE_TIME:
            self._add_older()
        self._keep_place()

    def jump_to_newest(self) -> None:
        self._following, self._from_bottom = True, None
        self._keep_place()

    def _keep_place(self) -> None:
        bar = self.verticalScrollBar()
        if self._following:
            bar.setValue(bar.maximum())
        elif self._from_bottom is not None:
            bar.setValue(bar.maximum() - self._from_bottom)
        self._jump.setVisible(not self._following)

    def _scrolled(self, value: int) -> None:
        bar = self.verticalScrollBar()
        self._following = value >= bar.maximum() - AT_BOTTOM
        self._jump.setVisible(not self._following)
        if value < self.viewport().height() and self._older:
            self._idle.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = max(19, (self.viewport().width() - COLUMN_WIDTH) // 2)
        self._column.setContentsMargins(side, 16, side, 12)  # and the frame of the focus
        size = self._jump.sizeHint()
        self._jump.resize(size)
        self._jump.move((self.width() - size.width()) // 2, self.height() - size.height() - 10)

    # --- widgets ----------------------------------------------------------------------------------
    def _make(self, message: Message) -> QuestionView | AnswerView:
        if message.role == "user":
            view = QuestionView(self._theme, message)
            view.menu_wanted.connect(self.menu_wanted)
            return view
        return self._connected(AnswerView(self._theme, message))

    def _connected(self, view: AnswerView) -> AnswerView:
        view.menu_wanted.connect(self.menu_wanted)
        view.opened.connect(self.opened)
        view.link.connect(self.link)
        view.regenerate.connect(self.regenerate)
        view.go_on.connect(self.go_on)
        view.read_rest.connect(self.read_rest)
        return view

    def _append(self, view: QuestionView | AnswerView) -> None:
        self._views.append(view)
        self._column.insertWidget(self._column.count() - 1, view)

    def _add_older(self) -> None:
        """One older message above; what the reader looks at stays where it is."""
        near_top = self.verticalScrollBar().value() < self.viewport().height()
        if not self._older or (len(self._views) >= IN_IDLE_TIME and not near_top):
            self._idle.stop()
            return
        bar = self.verticalScrollBar()
        if not self._following:
            self._from_bottom = bar.maximum() - bar.value()
        view = self._make(self._older.pop())
        self._views.insert(0, view)
        self._column.insertWidget(1, view)
        self._page.layout().activate()
        if not self._older:
            self._idle.stop()
        QTimer.singleShot(0, self, self._let_go)

    def _show_left(self, messages: Sequence[Message]) -> None:
        """A line at the top says how much has left the context; what has is dimmed."""
        left = sum(not message.in_context for message in messages)
        self._left.setVisible(bool(left))
        self._left_words.setText(
            f"{plural(left, 'message')} {'has' if left == 1 else 'have'} left the model's context (dimmed)."
        )

    def _let_go(self) -> None:
        self._from_bottom = None

    def _mark_last(self, none: bool = False) -> None:
        answers = self.answers
        for view in answers[-2:]:
            is_last = not none and view is answers[-1] and view is self._views[-1]
            view.set_last(is_last, is_last and self._elsewhere)

    def _remove(self, view: QuestionView | AnswerView) -> None:
        self._views.remove(view)
        self._column.removeWidget(view)
        view.hide()
        view.deleteLater()

    def _clear(self) -> None:
        self._idle.stop()
        self._live = None
        self._older = []
        for view in list(self._views):
            self._remove(view)

    def _redraw(self) -> None:
        """Colours are part of the rich text, so a change of theme builds the settled messages again."""
        live, place = self._live, self.place()
        messages = [*self._older, *(view.message for view in self._views if view is not live)]
        text, reasoning = (live.text(), live.thought.text) if live is not None else ("", "")
        self.show_messages(messages, self._elsewhere)
        if live is not None:
            self.begin_answer(live.message, text, reasoning)
        self.restore_place(place)
