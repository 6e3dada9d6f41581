"""An answer while it streams: what is shown, what is stored, and how it ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from app.core.conversations import ConversationStore
from app.core.engine_events import Mailbox, TurnEvent
from app.core.errors import UserError
from app.core.events import Part, Phase, TurnError, TurnPhase, TurnText, WorkspaceEvent
from app.core.loops import LONGEST, TIMES, goes_in_circles
from app.core.reasoning import ReasoningSplit, split_answer
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
    the turn, for an answer that goes in circles (`looped`). `reasons`: the model may set reasoning apart.
    """

    turn: TurnId
    conversation: ConversationId
    message: Message
    store: ConversationStore
    emit: Callable[[WorkspaceEvent], None]
    prompt_tokens: int
    stop: Callable[[], None]
    reasons: bool = False
    text: str = ""
    reasoning: str = ""
    thought_s: float = 0.0
    ids: list[int] = field(default_factory=list)
    reused: int = 0
    computed: int = 0
    saved_ms: float = 0.0
    failure: UserError | None = None
    looped: bool = False
    past_ms: float = 0.0  # how long the engine went on after that
    _stored: float = field(default_factory=time.monotonic)
    _split: ReasoningSplit = field(init=False)
    _raw: str = ""
    _looped_at: float = 0.0
    _thinking: float | None = None  # when the reasoning began that goes on now

    def __post_init__(self) -> None:
        self._split = ReasoningSplit(self.reasons)

    def follow(self, mailbox: Mailbox) -> TurnFinished | None:
        """Until the turn ends. None: it failed, `failure` says why; what came so far is stored either way."""
        while True:
            event = mailbox.get()
            if isinstance(event, TurnFinished):
                self._finish(event)
                return event
            if isinstance(event, TurnFailed):
                self.failure = UserError(event.what, event.why, event.next)
                return None
            self._progress(event)

    def _finish(self, event: TurnFinished) -> None:
        """Where the answer went in circles it ends there, and not where the engine heard of it: that is chance."""
        self._end_thought()
        reasoning, answer = split_answer(self._raw if self.looped else event.text, self.reasons)
        self.reasoning, self.text = reasoning.strip("\n"), self._answer_behind(reasoning, answer)
        self.ids = self.ids if self.looped else list(event.generated.ids)
        self.past_ms = (time.monotonic() - self._looped_at) * 1e3 if self.looped else 0.0

    def so_far(self, state: MessageState) -> Message:
        so_far, tokens = self.message, self.message.tokens + Tokens.generated(self.ids)
        return replace(
            so_far,
            text=so_far.text + self.text,
            tokens=tokens,
            state=state,
            reasoning=so_far.reasoning + self.reasoning,
            thought_ms=so_far.thought_ms + self.thought_s * 1000,
        )

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
            self._keep_sometimes()
            left = (event.total - event.done) / event.tokens_per_second if event.tokens_per_second else None
            self._phase("reading", event.told, event.total, left)
        elif isinstance(event, TurnRestored):
            self.reused, self.saved_ms = event.reused.total, event.saved_ms
            if event.reused.disk:
                self._phase("restoring", event.reused.disk, event.reused.disk)
            self.emit(event)
        elif isinstance(event, TurnQueued):
            self._phase("queued", event.ahead, event.ahead)

    def _add(self, event: TokenDelta) -> None:
        if self.looped:
            return
        if not self.ids:
            self._phase("answering")
        self.ids += event.ids
        self._raw += event.text
        for part, piece in self._split.feed(event.text):
            self._show(part, piece)
        if event.text:
            self._watch_for_loops()
        self._keep_sometimes()

    def _show(self, part: Part, piece: str) -> None:
        if part == "reasoning":
            self._thinking = self._thinking or time.monotonic()
            piece = piece if self.reasoning else piece.lstrip("\n")
            self.reasoning += piece
        else:
            self._end_thought()
            piece = piece if self.text else self._answer_behind(self.reasoning, piece)
            self.text += piece
        if piece:
            self.emit(TurnText(self.turn, self.conversation, self.message.id, piece, part))

    def _answer_behind(self, reasoning: str, answer: str) -> str:
        """The empty lines between reasoning and answer belong to neither."""
        return answer.lstrip("\n") if reasoning and not self.message.text else answer

    def _end_thought(self) -> None:
        if self._thinking is not None:
            self.thought_s += time.monotonic() - self._thinking
            self._thinking = None

    def _watch_for_loops(self) -> None:
        if not self.looped and goes_in_circles(self._raw[-LOOKED_AT:]):
            self.looped, self._looped_at = True, time.monotonic()
            self.stop()

    def _keep_sometimes(self) -> None:
        if time.monotonic() - self._stored >= STORE_EVERY_S:
            with contextlib.suppress(UserError):  # a full disk is told at the end; the answer is shown
                self.keep()

    def keep(self) -> None:
        """Stores the answer so far as partial: after a crash it is there and can go on."""
        partial = self.so_far("partial")
        self.store.update_answer(
            partial.id, partial.text, partial.tokens, "partial", partial.reasoning, partial.thought_ms,
            self.tokens_with_kv,
        )  # fmt: skip
        self._stored = time.monotonic()

    def _phase(self, phase: Phase, done: int = 0, total: int = 0, left: float | None = None) -> None:
        self.emit(TurnPhase(self.turn, self.conversation, phase, done, total, left))


def failed_at_once(ended: WorkspaceEvent) -> UserError | None:
    """Why, where the model wrote nothing: such an answer is not kept."""
    if not isinstance(ended, TurnError) or ended.message is None or ended.message.tokens.ids:
        return None
    return ended.error
