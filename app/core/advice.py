"""What the reader is told about a question that does not fit: nothing is cut in silence."""

from __future__ import annotations

from collections.abc import Callable

from app.core.errors import DoesNotFit
from app.core.plans import Plan
from engine.messages import ModelLoaded
from engine.overflow import OverflowOption
from rag.sizes import size_text


def check_fits(
    plan: Plan, ways: Callable[[], tuple[OverflowOption, ...]] = tuple, loaded: ModelLoaded | None = None
) -> None:
    """Raises DoesNotFit, with the `ways` out, when prompt and answer are longer than the context: the model's, or what
    the memory budget holds of it (`loaded`); the budget is not named where the model itself has no room for it."""
    if plan.over_by:
        by_memory = loaded is not None and loaded.bounding_bytes > 0 and _needed(plan) <= loaded.model_context
        what, why, next = _over_memory(plan, loaded) if loaded and by_memory else _over_context(plan)
        raise DoesNotFit(what, why, next, bool(plan.addition.documents), ways(), plan.overrun, by_memory)


def _over_context(plan: Plan) -> tuple[str, str, str]:
    return (
        f"This does not fit the model's context by {plan.over_by:,} tokens.",
        f"{plan.overrun.sum}. {what_would_drop(plan)}",
        advice(plan),
    )


def _needed(plan: Plan) -> int:
    """Tokens of prompt and answer."""
    return plan.limit + plan.over_by


def _over_memory(plan: Plan, loaded: ModelLoaded) -> tuple[str, str, str]:
    needed, budget = _needed(plan) * loaded.kv_bytes_per_token, loaded.bounding_bytes
    return (
        f"This needs {size_text(needed)} of memory for state; the budget is {size_text(budget)}.",
        f"It would take {plan.total:,} tokens and room for an answer; the budget holds {plan.limit:,}.",
        f"Raise the memory budget in the preferences, or choose a smaller KV type there. {advice(plan)}",
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
