"""Answers whose state turns out damaged after they have ended: noted with them, so that the reader sees it there."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable

from app.core.conversations import ConversationStore
from app.core.events import AnswerChanged, TurnDone, TurnError, TurnMoved, TurnStarted, TurnWithdrawn, WorkspaceEvent
from app.core.records import MessageId
from engine.messages import AnswerDoubted, TurnId

log = logging.getLogger(__name__)
_REMEMBERED = 256  # turns, as many as the engine remembers


class Doubted:
    def __init__(self, store: Callable[[], ConversationStore], tell: Callable[[AnswerChanged], None]) -> None:
        """`tell` hears, on a thread of its own, of each answer once it is noted."""
        self._store, self._tell = store, tell
        self._answers: OrderedDict[TurnId, MessageId] = OrderedDict()
        self._running: set[MessageId] = set()
        self._waiting: set[MessageId] = set()  # for the end of their turn: they have no report before
        self._unknown: deque[TurnId] = deque(maxlen=_REMEMBERED)  # whose answer is told later, or never
        self._queue: deque[MessageId] = deque()
        self._working = False
        self._lock = threading.Lock()

    def hear(self, event: WorkspaceEvent) -> None:
        """Any thread; returns at once (the engine does not wait for the database) and never raises."""
        if isinstance(event, TurnStarted):
            with self._lock:
                self._begun(event.turn, event.assistant_message.id)
        elif isinstance(event, TurnMoved):
            with self._lock:
                self._moved(event.turn, event.summary)
        elif isinstance(event, TurnDone | TurnError | TurnWithdrawn):
            with self._lock:
                self._ended(event.turn)
        elif isinstance(event, AnswerDoubted):
            with self._lock:
                self._doubted(event.turn)

    def _begun(self, turn: TurnId, answer: MessageId) -> None:
        self._answers[turn] = answer
        self._running.add(answer)
        while len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)

    def _moved(self, turn: TurnId, summary: MessageId) -> None:
        """What the turn wrote is stored now; its state may have been found damaged meanwhile."""
        self._begun(turn, summary)
        self._ended(turn)
        if turn in self._unknown:
            self._doubted(turn)

    def _ended(self, turn: TurnId) -> None:
        answer = self._answers.get(turn)
        if answer is not None:
            self._running.discard(answer)
            if answer in self._waiting:
                self._waiting.discard(answer)
                self._enqueue(answer)

    def _doubted(self, turn: TurnId) -> None:
        whole = TurnId(turn.partition("-")[0])  # parts of a survey are named by it and their number
        answer = self._answers.get(turn, self._answers.get(whole))
        if answer is None:
            self._unknown.append(turn)
        elif answer in self._running:
            self._waiting.add(answer)
        else:
            self._enqueue(answer)

    def _enqueue(self, answer: MessageId) -> None:
        self._queue.append(answer)
        if not self._working:
            self._working = True
            threading.Thread(target=self._work, name="doubted", daemon=True).start()

    def _work(self) -> None:
        while (answer := self._next()) is not None:
            try:
                for noted in self._store().doubts.note(answer):
                    self._tell(AnswerChanged(noted.conversation, noted))
            except Exception as error:
                log.info("damage is not noted with its answer: %s", type(error).__name__)

    def _next(self) -> MessageId | None:
        with self._lock:
            self._working = bool(self._queue)
            return self._queue.popleft() if self._queue else None
