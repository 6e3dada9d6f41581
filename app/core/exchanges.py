"""A conversation as questions with their answers: which of them count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from app.core.errors import UserError
from app.core.records import Message, Placement, UsedMode
from engine.messages import LastTurn


def split_unanswered(messages: Sequence[Message]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """(what is in the prompt of a next question, the last question with its empty answer when it has none).

    A question that was stopped before its answer began is seen and can be asked again, but it is no part of later
    prompts: a model that reads empty answers gives empty answers. The exception are questions that were composed
    behind an unanswered first one, which alone holds header and documents.
    """
    messages = spoken(messages)
    exchanges: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    pending = exchanges.pop() if exchanges and not _answered(exchanges[-1]) else []
    kept = [message for exchange in exchanges if _answered(exchange) for message in exchange]
    if kept and not kept[0].placement.shared_tokens and messages[0].placement.shared_tokens:
        kept = [message for exchange in exchanges for message in exchange]
    return tuple(kept), tuple(pending)


def followed(messages: Iterable[Message]) -> tuple[Message, ...]:
    """What a next question follows: those that are in the context and answered."""
    return split_unanswered([message for message in messages if message.in_context])[0]


def in_prompt(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The same, with a last question that has no answer yet."""
    answered, pending = split_unanswered([message for message in messages if message.in_context])
    return answered + pending


def exchange_of(question: Message, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The question with what answers it."""
    behind = messages[messages.index(question) + 1 :]
    return (question, *takewhile(lambda message: message.role != "user", behind))


def spoken(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Without what the catalogue answered: the model has seen nothing of it."""
    kept: list[Message] = []
    silent = False
    for message in messages:
        silent = silent_question(message) if message.role == "user" else silent
        if not silent:
            kept.append(message)
    return tuple(kept)


def silent_exchange(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The last question with its answer when the catalogue gave it; () otherwise."""
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    return tuple(messages[asked[-1] :]) if asked and silent_question(messages[asked[-1]]) else ()


def silent_question(message: Message) -> bool:
    """It was answered without the model."""
    return message.role == "user" and not message.tokens.ids


def _answered(exchange: Iterable[Message]) -> bool:
    return any(message.role == "assistant" and message.text.strip() for message in exchange)


def last_turn(messages: Sequence[Message]) -> LastTurn:
    """How the last answer ended: one that is still unfinished was cut off with its process. And behind how many tokens
    its turn began."""
    state = next((m.state for m in reversed(messages) if m.role == "assistant"), "complete")
    if state == "complete":
        return LastTurn()
    answered, unanswered = split_unanswered([message for message in messages if message.in_context])
    asked = [place for place, message in enumerate(answered) if message.role == "user"]
    before = answered if unanswered else answered[: asked[-1]] if asked else ()
    return LastTurn("cut off" if state == "partial" else "stopped", sum(len(message.tokens) for message in before))


def placement_of(messages: tuple[Message, ...]) -> Placement:
    return messages[0].placement if messages else Placement()


def mode_of(messages: tuple[Message, ...]) -> UsedMode:
    placements = [message.placement for message in messages if message.role == "user"]
    if any(p.documents for p in placements):
        return "whole"
    return "passages" if any(p.passages for p in placements) else "none"


def up_to_last_question(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    asked = [i for i, message in enumerate(messages) if message.role == "user"]
    if not asked:
        raise UserError("There is no question to answer.", "The conversation is empty.", "Ask something.")
    return messages[: asked[-1] + 1]
