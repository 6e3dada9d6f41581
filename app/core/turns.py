"""Turns that run: one thread per turn, several conversations at once, one turn per conversation.

What a turn does is in turn_work.py.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Callable

from app.core.errors import Cancelled, UserError, as_user_error
from app.core.events import TurnDone, TurnError, TurnMoved, TurnWithdrawn, WorkspaceEvent
from app.core.records import MessageId
from app.core.turn_parts import RunningTurn, TurnServices
from app.core.turn_work import TurnWork
from engine.messages import Cancel, ConversationId, TurnId
from engine.overflow import OverflowWay

log = logging.getLogger(__name__)
Work = Callable[[RunningTurn], WorkspaceEvent]


class Turns:
    """Starts turns and keeps track of them; thread-safe."""

    def __init__(self, services: TurnServices) -> None:
        self._with = services
        self._work = TurnWork(services)
        self._lock = threading.Lock()
        self._running: dict[ConversationId, RunningTurn] = {}

    def running(self) -> dict[ConversationId, TurnId]:
        with self._lock:
            return {conversation: job.turn for conversation, job in self._running.items()}

    def ask(
        self,
        conversation: ConversationId,
        text: str,
        overflow: OverflowWay | None = None,
        survey: bool = False,
        is_draft: bool = True,
    ) -> TurnId:
        """`overflow`: how to go on if the question does not fit; "fork" then ends in TurnMoved.

        `survey`: every part is read that the model has not before it. `is_draft`: the text was the conversation's
        draft, and is again if it cannot be asked; else that stays as it is.
        """
        question = _asked(text)
        draft = question if is_draft else ""
        return self._start(conversation, lambda job: self._work.ask(job, question, overflow, survey), draft)

    def edit(
        self, conversation: ConversationId, message: MessageId, text: str, overflow: OverflowWay | None = None
    ) -> TurnId:
        """As `ask`, in the place of that question; it and all behind it are put aside."""
        question = _asked(text)
        return self._start(conversation, lambda job: self._work.edit(job, message, question, overflow))

    def regenerate(self, conversation: ConversationId) -> TurnId:
        return self._start(conversation, self._work.regenerate)

    def continue_answer(self, conversation: ConversationId) -> TurnId:
        return self._start(conversation, self._work.continue_answer)

    def cancel(self, turn: TurnId) -> None:
        with self._lock:
            jobs = [job for job in self._running.values() if job.turn == turn]
        for job in jobs:
            job.stop(lambda submitted: self._with.engine().send(Cancel(submitted)))

    def close(self, timeout: float) -> None:
        """Stops all turns and waits for them to store what they have."""
        with self._lock:
            jobs = list(self._running.values())
        for job in jobs:
            self.cancel(job.turn)
        for job in jobs:
            if job.thread is not None and job.thread is not threading.current_thread():
                job.thread.join(timeout)

    # --- the turn's thread ----------------------------------------------------------------------------
    def _start(self, conversation: ConversationId, work: Work, draft: str = "") -> TurnId:
        if not self._with.gate.loading:
            self._with.gate.current()
        job = RunningTurn(TurnId(uuid.uuid4().hex), conversation, draft)
        with self._lock:
            if conversation in self._running:
                raise UserError(
                    "This conversation is still answering.",
                    "One answer at a time.",
                    "Wait, or stop it first.",
                )
            self._running[conversation] = job
        job.thread = threading.Thread(target=self._run, args=(job, work), name=f"turn-{job.turn[:8]}", daemon=True)
        job.thread.start()
        return job.turn

    def _run(self, job: RunningTurn, work: Work) -> None:
        """The last event comes after everything is released: whoever hears it can ask again at once."""
        last: WorkspaceEvent = TurnWithdrawn(job.turn, job.conversation)
        try:
            last = self._outcome(job, work)
            if job.draft and not isinstance(last, TurnDone | TurnMoved) and getattr(last, "message", None) is None:
                self._keep_draft(job.conversation, job.draft)
        finally:
            self._with.events.close(job.turn)
            with self._lock:
                self._running.pop(job.conversation, None)
            self._with.emit(last)

    def _outcome(self, job: RunningTurn, work: Work) -> WorkspaceEvent:
        try:
            with self._with.store().lease(job.conversation):
                return work(job)
        except Cancelled:
            return TurnWithdrawn(job.turn, job.conversation)
        except Exception as error:
            log.info("turn failed: %s", type(error).__name__, exc_info=not hasattr(error, "what"))
            self.cancel(job.turn)  # the engine may still be answering
            return TurnError(job.turn, job.conversation, as_user_error(error))

    def _keep_draft(self, conversation: ConversationId, draft: str) -> None:
        try:
            self._with.store().set_draft(conversation, draft)
        except Exception as error:
            log.info("the question is not kept: %s", type(error).__name__)


def _asked(text: str) -> str:
    question = text.strip()
    if not question:
        raise UserError("There is no question.", "The text is empty.", "Type a question.")
    return question
