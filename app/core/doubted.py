"""Answers whose state turns out damaged after they have ended: noted with them, so that the reader sees it there."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from app.core.conversations import ConversationStore
from app.core.events import AnswerChanged, TurnStarted, WorkspaceEvent
from app.core.records import Message, MessageId
from engine.messages import AnswerDoubted, TurnId

log = logging.getLogger(__name__)
_REMEMBERED = 256  # turns, as many as the engine remembers
_TRIES, _PAUSE_SECONDS = 25, 0.2  # until an answer that has just ended has its report


class Doubted:
    def __init__(self, store: Callable[[], ConversationStore], tell: Callable[[AnswerChanged], None]) -> None:
        """`tell` hears, on a thread of its own, of each answer once it is noted."""
        self._store, self._tell = store, tell
        self._answers: OrderedDict[TurnId, MessageId] = OrderedDict()
        self._lock = threading.Lock()

    def hear(self, event: WorkspaceEvent) -> None:
        """Any thread; returns at once (the engine does not wait for the database) and never raises."""
        if isinstance(event, TurnStarted):
            with self._lock:
                self._answers[event.turn] = event.assistant_message.id
                while len(self._answers) > _REMEMBERED:
                    self._answers.popitem(last=False)
        elif isinstance(event, AnswerDoubted):
            self._begin(event)

    def _begin(self, event: AnswerDoubted) -> None:
        with self._lock:
            message = self._answers.get(event.turn)
        if message is not None:
            threading.Thread(target=self._note, args=(event, message), name="doubted", daemon=True).start()

    def _note(self, event: AnswerDoubted, message: MessageId) -> None:
        try:
            for _ in range(_TRIES):
                if marked := mark_doubted(self._store(), event, message):
                    self._tell(AnswerChanged(event.conversation, marked))
                    break
                time.sleep(_PAUSE_SECONDS)
        except Exception as error:
            log.info("damage is not noted with its answer: %s", type(error).__name__)


def mark_doubted(store: ConversationStore, event: AnswerDoubted, message: MessageId) -> Message | None:
    """The answer as it is stored now; None: it is gone, or has no report (yet)."""
    with store.transaction():
        found = next((one for one in store.messages(event.conversation) if one.id == message), None)
        if found is None or found.report is None:
            return None
        report = replace(found.report, doubtful=len(found.tokens))
        return store.finish_answer(found, found.citations, report)
