"""What planning starts from and what it gives: a conversation before its next question, and that question composed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date as Date
from typing import Protocol

from app.core.errors import Overrun
from app.core.heads import Head
from app.core.lookups import Lookup
from app.core.prompt import Addition, Composed, Context
from app.core.records import Conversation, Message, UsedMode
from app.core.segments import PromptFormat
from engine.messages import LastTurn, Tokens

ANSWER_ROOM = 64  # tokens; an answer shorter than that helps nobody


class LoadedModel(Protocol):
    """What planning needs of `engine.client.ModelHandle`."""

    @property
    def chat(self) -> PromptFormat: ...

    @property
    def context(self) -> int: ...


@dataclass(frozen=True)
class Plan:
    """One question ready to be sent. `estimated`: upper bound of passages that were not looked up yet. `lookup`: what
    was searched, None when nothing had to be. `elsewhere`: about what a survey reads in prompts of its own. `date`: of
    the conversation with it. `answer_room`: tokens to be kept free for the answer, of a small context less."""

    context: Context
    history: Tokens
    composed: Composed
    addition: Addition
    mode: UsedMode
    limit: int
    retrieve_ms: float = 0.0
    estimated: int = 0
    lookup: Lookup | None = None
    elsewhere: int = 0
    date: Date | None = None
    answer_room: int = ANSWER_ROOM

    @property
    def tokens(self) -> Tokens:
        return self.history + self.composed.tokens

    @property
    def total(self) -> int:
        return len(self.history) + len(self.composed.tokens) + self.estimated

    @property
    def reserve(self) -> int:
        return min(self.answer_room, self.limit // 4)

    @property
    def overrun(self) -> Overrun:
        return Overrun(self.total, self.reserve, self.limit)

    @property
    def over_by(self) -> int:
        return self.overrun.over_by


@dataclass(frozen=True)
class Situation:
    """A conversation before its next question. `unanswered`: a last question that has no answer yet; it is not among
    the `messages` that the next question follows. `head`, `next_marker`: see prompt.Context. `last_turn`: how the last
    answer ended.
    """

    conversation: Conversation
    messages: tuple[Message, ...]
    model: LoadedModel
    end_ids: frozenset[int]
    unanswered: tuple[Message, ...] = ()
    head: Head | None = None
    next_marker: int = 1
    last_turn: LastTurn = field(default_factory=LastTurn)
