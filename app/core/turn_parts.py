"""What turns are made of: the services they work with, a running turn, and a request for an answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.core.conversations import ConversationStore
from app.core.engine_events import EngineEvents
from app.core.errors import Cancelled
from app.core.events import WorkspaceEvent
from app.core.gate import ModelGate, ReadyModel
from app.core.history import Histories
from app.core.overflow import ways_out
from app.core.planning import Planner
from app.core.plans import Plan, Situation
from app.core.prompt import common_start, history
from app.core.records import Message, UsedMode
from app.core.settings import Settings
from app.core.spans import Operation
from engine.messages import ConversationId, LastTurn, Tokens, TurnId

if TYPE_CHECKING:
    from engine.client import EngineClient
    from engine.overflow import OverflowOption
    from rag import Library


@dataclass(frozen=True)
class Look:
    """What a question meets: the model, the conversation as it stands, and what it takes to ask there.

    `computed`: leading tokens that have gone through the model.
    """

    model: ReadyModel
    situation: Situation
    computed: int
    plan: Plan

    @property
    def still_computed(self) -> int:
        """Of an unanswered question that this one replaces counts what both begin with."""
        alike = common_start(history(self.situation.unanswered), self.plan.composed.tokens)
        return min(self.computed, len(self.plan.history) + alike)

    def ways(self, engine: EngineClient, planner: Planner) -> tuple[OverflowOption, ...]:
        """How to go on if it does not fit."""
        return ways_out(self.plan, self.situation, engine, planner)


@dataclass(frozen=True)
class TurnServices:
    """What turns work with; parts that open lazily are functions. `enlarge`: loads the model with a larger context."""

    store: Callable[[], ConversationStore]
    library: Callable[[], Library]
    engine: Callable[[], EngineClient]
    settings: Callable[[], Settings]
    gate: ModelGate
    events: EngineEvents
    planner: Planner
    histories: Histories
    emit: Callable[[WorkspaceEvent], None]
    enlarge: Callable[[ConversationId, OverflowOption], None]


@dataclass
class RunningTurn:
    """`lock` orders submitting and stopping: a stop is never lost between the two. `submitted`: the engine's turn that
    runs for it now. `draft`: the question, where it was the conversation's draft until it was sent."""

    turn: TurnId
    conversation: ConversationId
    draft: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    submitted: TurnId | None = None
    thread: threading.Thread | None = None

    def stop(self, cancel: Callable[[TurnId], object]) -> None:
        """`cancel` ends a turn of the engine."""
        with self.lock:
            self.stopped.set()
            if self.submitted is not None:
                cancel(self.submitted)

    def spend_draft(self, store: ConversationStore) -> None:
        """The question is asked: there is no draft any more. That of a question from elsewhere stays."""
        if self.draft:
            store.set_draft(self.conversation, "")

    def check(self) -> None:
        if self.stopped.is_set():
            raise Cancelled


@dataclass(frozen=True)
class Request:
    """An answer to be computed: `messages` are the conversation up to the answer, `prompt` their ids. `operations`:
    what the question itself did to the history."""

    model: ReadyModel
    messages: tuple[Message, ...]
    answer: Message
    prompt: Tokens
    mode: UsedMode
    variant: int = 0
    retrieve_ms: float = 0.0
    computed: int = 0
    last_turn: LastTurn = field(default_factory=LastTurn)
    operations: tuple[Operation, ...] = ()
