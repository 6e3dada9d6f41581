"""From a composed question to its price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from app.core.advice import what_would_drop
from app.core.plans import Plan
from app.core.records import UsedMode
from engine.overflow import OverflowOption


@dataclass(frozen=True)
class Price:
    """What sending a draft would cost. Tokens exact, except `passage_tokens`, which is an upper bound.

    `new_tokens` + `reused_tokens` = `total`; `seconds` is None while this machine's rate is unknown.
    `over_by` > 0 exactly when `overflow`; `what_would_drop` then says what does not fit, else "", and `ways` what
    can be done. `reserve`: kept free for the answer. `fresh`: a document would be placed whole with this question.
    `history`: what the question would follow.
    """

    new_tokens: int
    reused_tokens: int
    total: int
    context: int
    seconds: float | None
    overflow: bool
    what_would_drop: str
    reused_memory: int = 0
    reused_disk: int = 0
    passage_tokens: int = 0
    over_by: int = 0
    reserve: int = 0
    mode: UsedMode = "none"
    ways: tuple[OverflowOption, ...] = ()
    fresh: bool = False
    history: int = 0


class Quote(Protocol):
    """`engine.client.Quote`."""

    @property
    def reused_memory(self) -> int: ...

    @property
    def reused_disk(self) -> int: ...

    @property
    def new(self) -> int: ...

    @property
    def seconds(self) -> float: ...


def price_of(plan: Plan, quote: Quote, ways: tuple[OverflowOption, ...] = ()) -> Price:
    """Passages that were not looked up yet are counted with their upper bound, in tokens and in time."""
    new = quote.new + plan.estimated + plan.elsewhere
    rate_known = quote.seconds > 0 and quote.new > 0
    return Price(
        new_tokens=new,
        reused_tokens=quote.reused_memory + quote.reused_disk,
        total=plan.total + plan.elsewhere,
        context=plan.limit,
        seconds=quote.seconds * new / quote.new if rate_known else None,
        overflow=plan.over_by > 0,
        what_would_drop=what_would_drop(plan),
        reused_memory=quote.reused_memory,
        reused_disk=quote.reused_disk,
        passage_tokens=plan.estimated + plan.elsewhere,
        over_by=plan.over_by,
        reserve=plan.reserve,
        mode=plan.mode,
        ways=ways,
        fresh=bool(plan.addition.documents),
        history=len(plan.history),
    )
