"""Where the question is written, with its price below: new tokens, expected wait, and room in the context."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QToolButton, QVBoxLayout, QWidget

from app.chat.aside import LONGEST_EDITED, Aside
from app.chat.editing import Editing
from app.chat.meter import Meter
from app.core.records import Message
from app.widgets.theme import Theme

if TYPE_CHECKING:
    from app.core.pricing import Price

PRICE_DELAY_MS = 220
DRAFT_DELAY_MS = 700
MOST_LINES = 9
MOST_OF_WINDOW = 0.2


class Editor(QPlainTextEdit):
    """Enter sends unless an input method is composing; Shift+Enter makes a new line; grows with its text.

    Up in an empty editor asks for the last question, to edit it.
    """

    send = Signal()
    last_wanted = Signal()
    focused = Signal(bool)
    long_pasted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("composer")
        self.setAccessibleName("Question")
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # lines are wrapped
        self.setPlaceholderText("Ask about your documents")
        self.document().setDocumentMargin(2)
        self._composing = False
        self.textChanged.connect(self.grow)
        self.grow()

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not (
            event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier)
        )
        if plain_enter and not self._composing:
            self.send.emit()
        elif event.key() == Qt.Key.Key_Up and self.document().isEmpty() and not self._composing:
            self.last_wanted.emit()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """At its end already, the text leaves Ctrl+End to the transcript."""
        asked = event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if asked and event.matches(QKeySequence.StandardKey.MoveToEndOfDocument) and self.textCursor().atEnd():
            event.ignore()
            return False
        return super().event(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() and not source.hasUrls()

    def insertFromMimeData(self, source: QMimeData) -> None:
        text = source.text()
        if len(text) > LONGEST_EDITED:
            self.long_pasted.emit(text)
        else:
            super().insertFromMimeData(source)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.grow()

    def grow(self) -> None:
        spacing = self.fontMetrics().lineSpacing()
        most = min(MOST_LINES, max(2, int(self.window().height() * MOST_OF_WINDOW / spacing)))
        lines = min(max(2, int(self.document().size().height())), most)
        self.setFixedHeight(lines * spacing + 8)  # whole lines, margin and padding
        fits = self.document().size().height() <= lines
        needed = Qt.ScrollBarPolicy.ScrollBarAlwaysOff if fits else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setVerticalScrollBarPolicy(needed)  # not for the part of a line that rounding leaves

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.grow()


class Composer(QWidget):
    """Signals:
    sent: the reader sends this text.
    stopped: the reader stops the running answer.
    price_wanted: the draft settled; its price should be shown (argument: text).
    draft_changed: the draft settled and should be kept (argument: text).
    priced: a price is shown (arguments: Price or None, whether there is a text).
    """

    sent = Signal(str)
    stopped = Signal()
    price_wanted = Signal(str)
    draft_changed = Signal(str)
    priced = Signal(object, bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._running = False
        self._elsewhere = False
        self._blocked = ""
        self._too_long = False
        self.editing = Editing(theme)
        self.editing.cancelled.connect(self.end_edit)
        self.aside = Aside(theme)
        self.aside.changed.connect(self._changed)
        self.editor = Editor()
        self.editor.long_pasted.connect(self.aside.add)
        self.editor.send.connect(self._send)
        self.editor.focused.connect(self._show_focus)
        self.editor.textChanged.connect(self._changed)
        self._button = QToolButton(iconSize=QSize(20, 20))
        self._button.clicked.connect(self._press)
        self.meter = Meter(theme)
        self._price_timer = _timer(self, PRICE_DELAY_MS, lambda: self.price_wanted.emit(self.text()))
        self._draft_timer = _timer(self, DRAFT_DELAY_MS, lambda: self.draft_changed.emit(self.text()))
        self._box = QWidget()
        self._lay_out()
        theme.changed.connect(self._show_button)
        self._show_button()

    def text(self) -> str:
        typed = self.editor.toPlainText()
        return f"{typed}\n\n{self.aside.text}".strip() if self.aside.text else typed

    def show_draft(self, text: str) -> None:
        """Another conversation's draft; not a change by the reader."""
        is_long = len(text) > LONGEST_EDITED
        self._too_long = False
        self.aside.put(text if is_long else "")
        self.editor.blockSignals(True)
        self.editor.setPlainText("" if is_long else text)
        self.editor.blockSignals(False)
        self.editor.moveCursor(self.editor.textCursor().MoveOperation.End)
        self.editor.grow()
        self._draft_timer.stop()
        self._price_timer.start()
        self._show_button()

    def begin_edit(self, message: Message, text: str = "") -> None:
        """The question is written again, from `text` on if there is one; the draft is stored and comes back then."""
        if (unsaved := self.take_unsaved_draft()) is not None:
            self.draft_changed.emit(unsaved)
        draft = self.editing.draft if self.editing.message is not None else self.text()
        self.editing.begin(message, draft)
        self.show_draft(text or message.text)
        self.editor.setFocus()

    def end_edit(self) -> None:
        if self.editing.message is not None:
            self.show_draft(self.editing.end())

    def take_unsaved_draft(self) -> str | None:
        """The draft when it has not been handed over yet, None otherwise."""
        if not self._draft_timer.isActive():
            return None
        self._draft_timer.stop()
        return self.text()

    def set_running(self, running: bool) -> None:
        self._running = running
        self._show_button()

    def block(self, reason: str) -> None:
        """Nothing can be sent because of `reason`; an empty one lifts it."""
        self._blocked = reason
        self._show_button()

    def set_elsewhere(self, elsewhere: bool) -> None:
        """Another process is answering: what a question would follow is known when it has."""
        before, self._elsewhere = self._elsewhere, elsewhere
        if elsewhere:
            self.show_price(None)
        elif before:
            self.meter.say(self._blocked)
            self.price_again()

    def show_price(self, price: Price | None) -> None:
        price = None if self._elsewhere else price
        has_text = bool(self.text().strip())
        self._too_long = price is not None and price.overflow and has_text
        self.meter.show_price(price, has_text)
        if self._elsewhere:
            self.meter.say("Another Pagekeep is answering here")
        self._show_button()
        self.priced.emit(price, has_text)

    def price_again(self) -> None:
        self._price_timer.start()

    def _lay_out(self) -> None:
        self._box.setObjectName("composerBox")
        self._box.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        inside = QHBoxLayout()
        inside.addWidget(self.editor, 1)
        inside.addWidget(self._button, 0, Qt.AlignmentFlag.AlignBottom)
        outside = QVBoxLayout(self._box)
        outside.setContentsMargins(8, 4, 6, 4)
        outside.setSpacing(0)
        outside.addWidget(self.editing)
        outside.addWidget(self.aside)
        outside.addLayout(inside)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 4, 20, 10)
        layout.setSpacing(6)
        layout.addWidget(self._box)
        layout.addWidget(self.meter)

    def _changed(self) -> None:
        self._price_timer.start()
        if self.editing.message is None:
            self._draft_timer.start()
        self._show_button()

    def _press(self) -> None:
        if self._running:
            self.stopped.emit()
        else:
            self._send()

    def _send(self) -> None:
        text = self.text().strip()
        if not text or self._running or self._why_not():
            return
        self._draft_timer.stop()
        if self.editing.message is None:
            self.show_draft("")
        self.sent.emit(text)

    def _show_button(self) -> None:
        why_not = self._why_not()
        name = "Stop the answer (Esc)" if self._running else why_not or "Send (Enter)"
        able = self._running or (self._has_text() and not why_not)
        self._button.setEnabled(able)
        icon = "stop" if self._running else "send"
        self._button.setIcon(self._theme.icon(icon, "accent" if able else "faint"))
        self._button.setToolTip(name)
        self._button.setAccessibleName(name)

    def _why_not(self) -> str:
        return self._blocked or ("Too long for the context" if self._too_long else "")

    def _has_text(self) -> bool:
        return bool(self.aside.text or self.editor.toPlainText().strip())

    def _show_focus(self, focused: bool) -> None:
        self._box.setProperty("active", focused)
        self._box.style().unpolish(self._box)
        self._box.style().polish(self._box)


def _timer(owner: Composer, interval: int, act: Callable[[], object]) -> QTimer:
    timer = QTimer(owner, singleShot=True, interval=interval)
    timer.timeout.connect(act)
    return timer
