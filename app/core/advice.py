"""What the reader is told about a question that does not fit: nothing is cut in silence."""

from __future__ import annotations

from collections.abc import Callable

from app.core.errors import DoesNotFit
from app.core.plans import Plan
from engine.overflow import OverflowOption


def check_fits(plan: Plan, ways: Callable[[], tuple[OverflowOption, ...]] = tuple) -> None:
    """Raises DoesNotFit, with the `ways` out, when prompt and answer are longer than the context."""
    if plan.over_by:
        raise DoesNotFit(
            f"This does not fit the model's context by {plan.over_by:,} tokens.",
            f"It would take {plan.total:,} of {plan.limit:,} tokens, and an answer needs room. "
            + what_would_drop(plan),
            advice(plan),
            bool(plan.addition.documents),
            ways(),
            plan.over_by,
        )


def what_would_drop(plan: Plan) -> str:
    """What would have to go so that the rest fits; "" when all fits."""
    if not plan.over_by:
        return ""
    if plan.addition.documents:
        names = ", ".join(document.name for document in plan.addition.documents)
        return f"At least {plan.over_by:,} tokens of {names} would have to be left out."
    if len(plan.history) >= plan.over_by:
        size = len(plan.history)
        return f"The oldest {plan.over_by:,} of {size:,} tokens of this conversation would have to go."
    return f"The question itself is {plan.over_by:,} tokens too long."


def advice(plan: Plan) -> str:
    if plan.addition.documents:
        return "Use passages instead of the whole document, or a model with a larger context."
    if len(plan.history) >= plan.over_by:
        return "Go on in a new conversation with the same documents, or use a model with a larger context."
    return "Shorten the question, or use a model with a larger context."
