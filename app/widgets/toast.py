"""Short messages at the foot of the window that go away by themselves, with an optional Undo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

STAY_MS = 8000
ABOVE_COMPOSER = 120
WIDEST = 620
GAP = 8
MOST_WAITING = 4


@dataclass(frozen=True)
class _Message:
    text: str
    action: str
    callback: Callable[[], object] | None
    keep: bool = False


class Toasts(QWidget):
    """One toast at a time over `host`; a new one replaces the old. It never takes the focus by itself."""

    def __init__(self, host: QWidget) -> None:
        super().__init__(host)
        self.setObjectName("toast")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._text = QLabel(wordWrap=True)
        self._action = QPushButton("Undo")
        self._action.clicked.connect(self._act)
        self._shown: _Message | None = None
        self._waiting: list[_Message] = []
        self._above: QWidget | None = None
        self._timer = QTimer(self, singleShot=True, interval=STAY_MS)
        self._timer.timeout.connect(self._next)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 8, 8, 8)
        layout.setSpacing(12)
        self._action.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        layout.addWidget(self._text, 1)
        layout.addWidget(self._action)
        host.installEventFilter(self)
        self.hide()

    def say(
        self, text: str, action: str = "", callback: Callable[[], object] | None = None, keep: bool = False
    ) -> None:
        """Shown at once, unless an offer is on the screen and this is none: then it waits its turn.

        `keep`: it waits for an offer too, and comes again where one took its place before it had its time.
        """
        message = _Message(text, action, callback, keep)
        if self._shown is not None and self._shown.action and (keep or not action):
            self._waiting.append(message)
        else:
            if self._shown is not None and self._shown.keep:
                self._waiting.insert(0, self._shown)
            self._show(message)
        news = [waiting for waiting in self._waiting if not waiting.keep]
        self._waiting = [waiting for waiting in self._waiting if waiting.keep or waiting in news[-MOST_WAITING:]]

    def stay_above(self, widget: QWidget) -> None:
        """Covers nothing: stands at the head of `widget`, which is somewhere in the host and makes room for it."""
        self._above = widget
        widget.installEventFilter(self)

    def offer_undo(self, text: str, undo: Callable[[], object]) -> None:
        self.say(text, "Undo", undo)

    def _show(self, message: _Message) -> None:
        self._shown = message
        self._text.setText(_shortened(message.text))
        self._action.setText(message.action)
        self._action.setVisible(bool(message.action))
        self.setAccessibleName(message.text)
        self._place()
        self.show()
        self.raise_()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))
        self._timer.start()

    def _next(self) -> None:
        self._shown = None
        self.hide()
        self._make_room(0)
        if self._waiting:
            self._show(self._waiting.pop(0))

    def _act(self) -> None:
        message = self._shown
        self._next()
        if message is not None and message.callback is not None:
            message.callback()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and self.isVisible():
            self._place()
        return False

    def _place(self) -> None:
        host, above = self.parentWidget(), self._above
        if above is None or not above.isVisible():
            box = QRect(0, 0, host.width(), host.height() - ABOVE_COMPOSER + 20)
        else:
            box = QRect(above.mapTo(host, QPoint()), above.size())
        margins = self.layout().contentsMargins()
        chrome = margins.left() + margins.right()
        if self._shown is not None and self._shown.action:
            chrome += self._action.sizeHint().width() + self.layout().spacing()
        natural = self._text.fontMetrics().horizontalAdvance(self._text.text()) + 8
        width = min(natural + chrome, box.width() - 32, WIDEST)
        height = self.layout().heightForWidth(width)
        self.resize(width, height)
        inside = above is not None and above.isVisible()
        self._make_room(height + 2 * GAP if inside else 0)
        top = box.top() + GAP if inside else box.bottom() - height
        self.move(box.left() + (box.width() - width) // 2, top)

    def _make_room(self, height: int) -> None:
        layout = self._above.layout() if self._above is not None else None
        if layout is not None and layout.contentsMargins().top() != height:
            margins = layout.contentsMargins()
            margins.setTop(height)
            layout.setContentsMargins(margins)


def _shortened(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
