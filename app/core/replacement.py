"""What a question takes from the history it is asked in: messages that it replaces, turns that it needs the room of.

It is tried first and taken back, so that the question is planned as it will stand while nothing has changed yet; then
it is done in one transaction with the question. A process that is killed leaves the one or the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from app.core.conversations import ConversationStore
from app.core.cuts import Cut, CutId
from app.core.records import MessageId
from app.core.spans import Operation
from engine.messages import ConversationId


@dataclass(frozen=True)
class Replaced:
    """What was done in `milliseconds`: when messages went aside, which turns left the context; None: none did.
    `tokens` left it in all."""

    moment: float | None = None
    cut: CutId | None = None
    milliseconds: float = 0.0
    tokens: int = 0

    @property
    def operations(self) -> tuple[Operation, ...]:
        """To be told with the turn."""
        if self.moment is None and self.cut is None:
            return ()
        return (Operation("take_out" if self.moment is None else "edit", self.milliseconds, self.tokens),)


@dataclass(frozen=True)
class Replacement:
    """`gone`: messages that go aside, behind the first `kept` tokens of the history; `cut`: turns that leave the
    context; `tokens`: how many are in these. `earlier`: tokens that were computed before, whatever goes."""

    gone: tuple[MessageId, ...] = ()
    kept: int = 0
    cut: Cut | None = None
    earlier: int = 0
    tokens: int = 0

    def apply(self, store: ConversationStore, conversation: ConversationId, page_tokens: int) -> Replaced:
        """One transaction. Raises UserError where the turns are not in the context."""
        moment, cut, began = None, None, time.perf_counter()
        with store.transaction():
            if self.gone:
                moment = store.cuts.set_aside(conversation, self.gone, self.kept, page_tokens)
            if self.cut is not None:
                cut = store.cuts.apply(conversation, self.cut, page_tokens, moment)
        return Replaced(moment, cut, (time.perf_counter() - began) * 1e3, self.tokens)


NOTHING_GOES = Replacement()
