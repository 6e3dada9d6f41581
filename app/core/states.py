"""The KV state of conversations: looked at, brought back, saved, pinned, forgotten."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.core.engine_host import EngineHost
from app.core.errors import UserError
from app.core.explain import after_cut, last_computed, to_be_moved, with_moves
from app.core.history import Histories
from app.core.prompt import history
from engine.messages import (
    ConversationId,
    DropState,
    Focus,
    LastTurn,
    PinState,
    QueryState,
    SaveState,
    StateReport,
    Tokens,
)

if TYPE_CHECKING:
    from app.core.conversations import ConversationStore
    from app.core.cuts import Moved
    from app.core.plans import Situation


class States:
    """Commands to the engine, which is started by them; all return at once."""

    def __init__(
        self, host: EngineHost, store: Callable[[], ConversationStore], histories: Histories, kv: Path
    ) -> None:
        self._host = host
        self._store = store
        self._histories = histories
        self._kv = kv
        self._requests = itertools.count(1)
        self._moved: dict[int, int] = {}  # by request, where turns were taken out since the last answer: tokens

    def focus(self, conversation: ConversationId) -> None:
        """The reader looks at it: its turns go first and its state is brought back from disk."""
        shifts = self._store().cuts.moved(conversation).shifts
        self._host.client.send(Focus(conversation, self._tokens(conversation), shifts))

    def request(self, conversation: ConversationId) -> int:
        """Returns a request number; a StateReport event with that number follows."""
        request = next(self._requests)
        moved = self._store().cuts.moved(conversation)
        situation, computed = self._situation(conversation)
        tokens = history(situation.messages + situation.unanswered) if situation else Tokens()
        ended = situation.last_turn if situation else LastTurn()
        if situation and self._cut_since(situation):
            self._moved[request] = self._to_be_moved(tokens, moved)
        self._host.client.send(QueryState(request, conversation, tokens, moved.shifts, computed, ended))
        return request

    def explained(self, report: StateReport) -> StateReport:
        """With the reader's own changes named as the reason."""
        moved = self._moved.pop(report.request, None)
        if moved is None:
            return report
        missing = after_cut(report.missing, moved)
        return replace(report, missing=missing, pages=with_moves(report, to_be_moved(replace(report, missing=missing))))

    def _cut_since(self, situation: Situation) -> bool:
        """Whether turns have left the context since the last answer."""
        answered = last_computed(situation.messages)
        return bool(answered) and self._store().cuts.made_after(situation.conversation.id, answered)

    def _to_be_moved(self, tokens: Tokens, moved: Moved) -> int:
        if moved.removal is None:
            return 0
        plain, price = (self._host.client.quote(tokens, moved.shifts, *how) for how in ((), (moved.removal,)))
        return max(0, plain.new - price.new)

    def save(self, conversation: ConversationId) -> None:
        self._host.client.send(SaveState(conversation))

    def pin(self, conversation: ConversationId, pinned: bool = True) -> None:
        """Its pages stay in memory when idle and are never evicted from disk."""
        self._host.client.send(PinState(conversation, pinned))

    def drop(self, conversation: ConversationId, disk: bool = False) -> None:
        """Forgets its KV in memory; `disk`: also what no other conversation uses there."""
        self._host.client.send(DropState(conversation, disk))

    def operations(self, conversation: ConversationId, last: int = 40) -> list[dict[str, Any]]:
        """What was done with its KV state, oldest first (engine.kv.log); complete after `request`."""
        from engine.kv.log import read_log

        return read_log(self._kv, last, "info", conversation)

    def _tokens(self, conversation: ConversationId) -> Tokens:
        """The history in the loaded model's ids; empty without a model."""
        situation, _ = self._situation(conversation)
        return history(situation.messages + situation.unanswered) if situation else Tokens()

    def _situation(self, conversation: ConversationId) -> tuple[Situation | None, int]:
        """With what was computed of it once; None without a model."""
        try:
            model = self._host.gate.current()
        except UserError:
            return None, 0
        return self._histories.situation(conversation, model)
