"""A conversation's history in the ids of the loaded model.

Stored ids are spliced as they are. Only when the model has another tokenizer are they made anew from the
stored texts; the new ids replace the old ones, so that this happens once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date as Date
from typing import TYPE_CHECKING

from app.core.conversations import ConversationStore
from app.core.documents import DocumentTexts
from app.core.exchanges import last_turn, split_unanswered
from app.core.heads import head_of_next
from app.core.plans import Situation
from app.core.prompt import recompose
from app.core.records import Message, MessageId
from engine.messages import ConversationId

if TYPE_CHECKING:
    from app.core.gate import ReadyModel


class Histories:
    """Reads situations; thread-safe."""

    def __init__(self, store: Callable[[], ConversationStore], texts: DocumentTexts) -> None:
        self._store = store
        self._texts = texts

    def situation(
        self,
        conversation: ConversationId,
        model: ReadyModel,
        store_renewed: bool = False,
        before: MessageId | None = None,
    ) -> tuple[Situation, int]:
        """The conversation before its next question, and how many leading tokens had KV once.

        `store_renewed`: ids made anew are stored; only for the process that holds the lease. `before`: as it was
        before that message.
        """
        store = self._store()
        stored = tuple(m for m in store.messages(conversation) if before is None or m.id < before)
        messages = tuple(message for message in stored if message.in_context)
        identity, computed = store.computed(conversation)
        if identity != model.identity:
            computed = 0
            date = store.get(conversation).date
            messages = self._renewed(messages, model, date) if identity else messages
            if store_renewed:
                store.set_tokens([(m.id, m.tokens, m.placement) for m in messages] if identity else [])
                store.set_computed(conversation, model.identity, 0)
                store.cuts.settle(conversation, approximate=False)
        answered, unanswered = split_unanswered(messages)
        head = head_of_next(answered, stored) if identity == model.identity else None
        free = _first_free_marker(stored)
        ended = last_turn(stored)
        found = Situation(store.get(conversation), answered, model, model.end_ids, unanswered, head, free, ended)
        return found, computed

    def _renewed(self, messages: tuple[Message, ...], model: ReadyModel, date: Date | None) -> tuple[Message, ...]:
        placed = [i.document_id for m in messages for i in (*m.placement.documents, *m.placement.passages)]
        names = self._texts.names(placed)
        chat, end = model.chat.dated(date), model.end_of_turn
        renewed = recompose(chat, messages, self._texts.placed, names, end, model.context)
        return tuple(replace(m, tokens=c.tokens, placement=c.placement) for m, c in renewed)


def _first_free_marker(messages: Sequence[Message]) -> int:
    """Numbers of passages that have left the context are not given again: kept answers may name them. Those of a
    question without an answer are: what was read for it is of use to the next one only under the same numbers."""
    answered, _ = split_unanswered(messages)
    placed = [i for m in answered for i in (*m.placement.documents, *m.placement.passages)]
    return max((item.first_marker + len(item.passage_ids) for item in placed), default=1)
