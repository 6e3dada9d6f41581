"""The conversation that goes on from a full one with a summary: how it begins, and whether a question fits there."""

from __future__ import annotations

from dataclasses import replace

from app.core.planning import Planner
from app.core.plans import LoadedModel, Plan, Situation
from app.core.records import Conversation, Message, MessageId
from engine.messages import Tokens
from engine.overflow import summary_tokens

ASKED = "What was said in “{}” before?"


def opening(
    planner: Planner, old: Conversation, target: Conversation, model: LoadedModel, end_ids: frozenset[int]
) -> Plan:
    """The first question of `target`, which goes on from `old`; the summary answers it."""
    return planner.plan(Situation(target, (), model, end_ids), ASKED.format(old.title), look_up=False)


def tokens_in_fork(planner: Planner, situation: Situation, plan: Plan) -> int:
    """Of the prompt with the question of `plan`, where the fork has the longest summary. Passages are counted with
    what they take in the conversation itself, if that is more."""
    model, end_ids, old = situation.model, situation.end_ids, situation.conversation
    target = replace(old, scope=None, date=None)
    first = opening(planner, old, target, model, end_ids).composed
    longest = Tokens.prompt([*end_ids][:1] * (summary_tokens(model.context) + 1))
    asked = Message(MessageId(1), old.id, "user", "", first.tokens, 0.0, placement=first.placement)
    summary = Message(MessageId(2), old.id, "assistant", "", longest, 0.0)
    there = planner.plan(Situation(target, (asked, summary), model, end_ids), plan.addition.question, look_up=False)
    here = 0 if plan.addition.documents else len(plan.composed.tokens) + plan.estimated
    return len(there.history) + max(here, len(there.composed.tokens) + there.estimated)
