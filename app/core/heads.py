"""Heads of questions: what of a message stays in the context when its question leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.records import Message, Placement
from engine.messages import Tokens


@dataclass(frozen=True)
class Head:
    """What the next question's message begins with, because `owner`, to which it belonged, has left the context."""

    owner: Message
    tokens: Tokens
    placement: Placement


def head_of(message: Message) -> Head:
    tokens, placement = message.tokens, message.placement
    head = Tokens(tokens.ids[: placement.head_tokens], tokens.roles[: placement.head_tokens])
    return Head(message, head, replace(placement, passages=()))


def head_of_next(messages: Sequence[Message], stored: Sequence[Message]) -> Head | None:
    """The head that waits for a question, where what followed `messages`, the answered ones, has left the context.

    `stored`: all messages of the conversation. An unanswered question has taken the head over before.
    """
    last = messages[-1].id if messages else 0
    behind = [m for m in stored if m.role == "user" and m.id > last and m.tokens.ids]
    left = [message for message in behind if not message.in_context]
    holders = [message for message in behind if message.in_context]
    return head_of((holders or left)[0]) if left else None


def joined(head: Placement, own: Placement, head_tokens: int) -> Placement:
    """The placement of a question behind a head that it took over."""
    return Placement(
        (*head.documents, *own.documents),
        own.passages,
        head.instructions if own.instructions is None else own.instructions,
        head.shared_tokens,
        head_tokens,
    )
