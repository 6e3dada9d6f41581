"""An answer while it streams: what is shown, what is stored, and how it ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.core.conversations import ConversationStore
from app.core.engine_events import Mailbox, TurnEvent
from app.core.errors import UserError
from app.core.events import Phase, TurnPhase, TurnText, WorkspaceEvent
from app.core.loops import LONGEST, TIMES, goes_in_circles
from app.core.records import Message, MessageState
from engine.messages import (
    ConversationId,
    PrefillProgress,
    TokenDelta,
    Tokens,
    TurnFailed,
    TurnFinished,
    TurnId,
    TurnQueued,
    TurnRestored,
)

STORE_EVERY_S = 1.0
LOOKED_AT = LONGEST * TIMES


@dataclass
class AnswerStream:
    """Follows one turn from submission to its end; runs on the turn's thread.

    `message` is the answer as stored before this turn; what the turn adds goes behind its text and ids. `stop` ends
    the turn, for an answer that goes in circles (`looped`).
    """

    turn: TurnId
    conversation: ConversationId
    message: Message
    store: ConversationStore
    emit: Callable[[WorkspaceEvent], None]
    prompt_tokens: int
    stop: Callable[[], None]
    text: str = ""
    ids: list[int] = field(default_factory=list)
    reused: int = 0
    computed: int = 0
    saved_ms: float = 0.0
    failure: UserError | None = None
    looped: bool = False
    _stored: float = field(default_factory=time.monotonic)

    def follow(self, mailbox: Mailbox) -> TurnFinished | None:
        """Until the turn ends. None: it failed, `failure` says why; what came so far is stored either way."""
        while True:
            event = mailbox.get()
            if isinstance(event, TurnFinished):
                self.text = event.text
                self.ids = list(event.generated.ids)
                return event
            if isinstance(event, TurnFailed):
                self.failure = UserError(event.what, event.why, event.next)
                return None
            self._progress(event)

    def so_far(self, state: MessageState) -> Message:
        tokens = self.message.tokens + Tokens.generated(self.ids)
        return replace(self.message, text=self.message.text + self.text, tokens=tokens, state=state)

    @property
    def tokens_with_kv(self) -> int:
        """Leading tokens of the conversation whose KV was computed; the last sampled one has none."""
        if self.ids:
            return self.prompt_tokens + len(self.ids) - 1
        return self.reused + self.computed

    def _progress(self, event: TurnEvent) -> None:
        if isinstance(event, TokenDelta):
            self._add(event)
        elif isinstance(event, PrefillProgress):
            self.computed = event.done
            left = (event.total - event.done) / event.tokens_per_second if event.tokens_per_second else None
            self._phase("reading", event.done, event.total, left)
        elif isinstance(event, TurnRestored):
            self.reused, self.saved_ms = event.reused.total, event.saved_ms
            if event.reused.disk:
                self._phase("restoring", event.reused.disk, event.reused.disk)
            self.emit(event)
        elif isinstance(event, TurnQueued):
            self._phase("queued", event.ahead, event.ahead)

    def _add(self, event: TokenDelta) -> None:
        if not self.ids:
            self._phase("answering")
        self.text += event.text
        self.ids += event.ids
        if event.text:
            self.emit(TurnText(self.turn, self.conversation, self.message.id, event.text))
            self._watch_for_loops()
        if time.monotonic() - self._stored >= STORE_EVERY_S:
            with contextlib.suppress(UserError):  # a full disk is told at the end; the answer is shown
                self.keep()

    def _watch_for_loops(self) -> None:
        if not self.looped and goes_in_circles(self.text[-LOOKED_AT:]):
            self.looped = True
            self.stop()

    def keep(self) -> None:
        """Stores the answer so far as partial: after a crash it is there and can go on."""
        partial = self.so_far("partial")
        self.store.update_answer(partial.id, partial.text, partial.tokens, "partial")
        self._stored = time.monotonic()

    def _phase(self, phase: Phase, done: int = 0, total: int = 0, left: float | None = None) -> None:
        self.emit(TurnPhase(self.turn, self.conversation, phase, done, total, left))
