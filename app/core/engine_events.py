"""Routes the engine's events: those of a turn to the thread that runs it, the rest to everybody."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from app.core.errors import UserError
from engine.messages import (
    ConversationId,
    Event,
    PrefillProgress,
    TokenDelta,
    TurnFailed,
    TurnFinished,
    TurnId,
    TurnQueued,
    TurnRestored,
)

TurnEvent = TurnQueued | TurnRestored | PrefillProgress | TokenDelta | TurnFinished | TurnFailed
Mailbox = queue.SimpleQueue[TurnEvent]


class EngineEvents:
    """`handle` is called on the engine's thread; it is quick and never raises."""

    def __init__(self, others: Callable[[Event], None]) -> None:
        self._others = others
        self._lock = threading.Lock()
        self._mailboxes: dict[TurnId, Mailbox] = {}

    def open(self, turn: TurnId) -> Mailbox:
        """The mailbox of a turn; open it before the turn is submitted."""
        mailbox: Mailbox = queue.SimpleQueue()
        with self._lock:
            self._mailboxes[turn] = mailbox
        return mailbox

    def close(self, turn: TurnId) -> None:
        with self._lock:
            self._mailboxes.pop(turn, None)

    def fail_all(self, error: UserError) -> None:
        """Ends every turn that still waits: the engine will not answer any more."""
        with self._lock:
            waiting = dict(self._mailboxes)
        for turn, mailbox in waiting.items():
            mailbox.put(TurnFailed(turn, ConversationId(""), error.what, error.why, error.next))

    def handle(self, event: Event) -> None:
        if not isinstance(event, TurnEvent):
            self._others(event)
            return
        with self._lock:
            mailbox = self._mailboxes.get(event.turn)
        if mailbox is not None:
            mailbox.put(event)
