"""How a question is stored: with its tokens, its placement, its date, and the head that it took over."""

from __future__ import annotations

from dataclasses import replace

from app.core.conversations import ConversationStore
from app.core.gate import ReadyModel
from app.core.heads import Head
from app.core.plans import Plan
from app.core.records import Message
from app.core.turn_parts import Look, RunningTurn
from engine.messages import Tokens


def store_question(store: ConversationStore, job: RunningTurn, question: str, look: Look) -> Message:
    """Within the caller's transaction. The conversation's draft is spent with it."""
    plan = look.plan
    composed = plan.composed
    user = store.append(
        job.conversation, "user", question, composed.tokens, placement=composed.placement, lookup=plan.lookup
    )
    store.dates.keep(plan.date, [document.id for document in plan.addition.documents], job.conversation)
    if look.situation.head is not None:
        _adopt(store, look.model, look.situation.head, plan, user)
    job.spend_draft(store)
    return user


def _adopt(store: ConversationStore, model: ReadyModel, head: Head, plan: Plan, user: Message) -> None:
    """Notes what the question is without the head that it took over, for the undo."""
    glue = model.chat.dated(plan.date).glue
    opening = Tokens.prompt(list(glue.next_user_open_ids(_ended(head.owner, store, model))))
    taken = len(head.tokens)
    rest = Tokens(user.tokens.ids[taken:], user.tokens.roles[taken:])
    alone = replace(plan.composed.placement, documents=(), shared_tokens=0, head_tokens=len(opening))
    store.cuts.adopt(head.owner.id, user.id, opening + rest, alone)


def _ended(left: Message, store: ConversationStore, model: ReadyModel) -> bool:
    """Whether the model itself ended the last of the answers that left with that question."""
    behind = [m for m in store.messages(left.conversation) if m.id >= left.id and not m.in_context]
    last = behind[-1].tokens.ids[-1:] if behind else ()
    return bool(last) and last[0] in model.end_ids
