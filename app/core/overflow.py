"""A conversation that outgrows its context: the ways out with their prices, and the turns that would go.

The reader chooses before anything is sent; nothing is cut in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from app.core.cuts import Cut
from app.core.errors import UserError
from app.core.forks import tokens_in_fork
from app.core.planning import Planner
from app.core.plans import Plan, Situation
from app.core.records import Message, MessageId
from engine.overflow import OverflowOption, OverflowWay

WAYS: tuple[OverflowWay, ...] = ("recompute", "shift", "fork", "larger")


class Pricing(Protocol):
    """`engine.client.EngineClient`."""

    def ways_out(
        self, total: int, shared: int, turns: tuple[int, ...], question: int, reserve: int
    ) -> tuple[OverflowOption, ...]: ...


def ways_out(plan: Plan, situation: Situation, engine: Pricing, planner: Planner) -> tuple[OverflowOption, ...]:
    """The ways for a question that does not fit behind its situation's messages; () when it fits."""
    if not plan.over_by:
        return ()
    starts = question_starts(situation.messages)
    question = len(plan.history) + plan.composed.placement.head_tokens
    carrier = carrier_of(situation.messages)
    shared = starts[carrier.id] if carrier else question
    turns = tuple(start for start in starts.values() if start >= shared)
    ways = engine.ways_out(plan.total, shared, turns, question, plan.reserve)
    return tuple(
        _counted(way, tokens_in_fork(planner, situation, plan), plan) if way.way == "fork" and not way.refused else way
        for way in ways
    )


def _counted(fork: OverflowOption, tokens: int, plan: Plan) -> OverflowOption:
    """With what the prompt there really takes: the engine knows only sums."""
    per_token, overrun = fork.bytes // fork.tokens, replace(plan.overrun, total=tokens)
    refused = f"With the longest summary, {overrun.sum}." if overrun.over_by else ""
    computed = fork.computed + tokens - fork.tokens
    return replace(fork, tokens=tokens, computed=computed, bytes=per_token * tokens, refused=refused)


def way_named(ways: Sequence[OverflowOption], wanted: OverflowWay) -> OverflowOption:
    """Raises UserError where this way is not to be had."""
    for option in ways:
        if option.way == wanted and not option.refused:
            return option
    why = next((option.refused for option in ways if option.way == wanted), "")
    others = ", ".join(option.way for option in ways if not option.refused)
    raise UserError(
        "This way out of the full context is not to be had here.",
        why or "The question fits.",
        f"Choose another: {others}." if others else "Shorten the question, or use a model with a larger context.",
    )


def cut_of(option: OverflowOption, messages: Sequence[Message]) -> Cut:
    """The turns that this way drops."""
    carrier = carrier_of(messages)
    assert carrier is not None, "there are no turns to drop"
    starts = question_starts(messages)
    kept = next((message for message, start in starts.items() if start == option.dropped[1]), None)
    return Cut(carrier.id, kept, "shift" if option.way == "shift" else "recompute")


def carrier_of(messages: Sequence[Message]) -> Message | None:
    """The question whose head stays: the last that brought a document along, else the first."""
    asked = [message for message in messages if message.role == "user"]
    with_documents = [message for message in asked if message.placement.documents]
    candidates = with_documents or asked[:1]
    return candidates[-1] if candidates else None


def question_starts(messages: Sequence[Message]) -> dict[MessageId, int]:
    """Where each question begins behind its head, in tokens of the history."""
    starts, position = {}, 0
    for message in messages:
        if message.role == "user":
            starts[message.id] = position + message.placement.head_tokens
        position += len(message.tokens)
    return starts
