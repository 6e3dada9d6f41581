"""Conversations as the reader handles them: changes are stored, told to the engine where it matters, and told on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.document_actions import Drop
from app.core.engine_host import EngineHost
from app.core.events import ConversationChanged, ConversationPurged, Notice
from app.core.exchanges import in_prompt
from app.core.kept import forget_kept
from app.core.lookups import Scope
from app.core.prompt import history
from app.core.records import Conversation, MessageId, Mode
from app.core.revisions import Revisions
from app.core.steady import check_steady
from app.core.turns import Turns
from engine.messages import ConversationId, ForkState

if TYPE_CHECKING:
    from app.core.conversations import ConversationStore

log = logging.getLogger(__name__)


class Chats:
    """ConversationChanged follows every change. `dropping`: as in DocumentActions."""

    def __init__(
        self,
        host: EngineHost,
        store: Callable[[], ConversationStore],
        turns: Turns,
        revisions: Revisions,
        kv: Path,
        dropping: Callable[[], Drop | None],
        emit: Callable[[ConversationChanged | ConversationPurged], None],
    ) -> None:
        self._host = host
        self._store = store
        self._turns = turns
        self._revisions = revisions
        self._kv = kv
        self._dropping = dropping
        self._emit = emit

    def new(self, title: str = "", documents: tuple[int, ...] = ()) -> Conversation:
        return self._changed(self._store().create(title, documents))

    def fresh(self) -> Conversation:
        """The latest one in which nothing was done yet, else a new one."""
        return next((one for one in self._store().list() if one.is_untouched), None) or self.new()

    def named(self, title: str) -> tuple[Conversation, bool]:
        """The conversation of that title or id, a new one where there is none, and whether it is new. Raises UserError
        where several have it."""
        conversation, is_new = self._store().named(title)
        return (self._changed(conversation) if is_new else conversation), is_new

    def about(self, notice: Notice) -> Notice:
        """It begins with the conversation that it is about. Reads the database: nothing for the main thread or the
        engine's."""
        if not notice.conversation:
            return notice
        try:
            title = self._store().get(ConversationId(notice.conversation)).title
        except Exception:  # whatever stands in the way: it is said without the name
            log.info("a notice is told without its conversation", exc_info=True)
            return replace(notice, conversation="")
        return replace(notice, what=f"“{title}”: {notice.what}", conversation="")

    def rename(self, conversation: ConversationId, title: str) -> Conversation:
        """Raises UserError when another conversation has that title."""
        return self._changed(self._store().rename(conversation, title))

    def attach(self, conversation: ConversationId, document: int) -> Conversation:
        return self._changed(self._store().attach(conversation, document))

    def detach(self, conversation: ConversationId, document: int) -> Conversation:
        """No later question looks into it; what the model has read stays in its context."""
        return self._changed(self._store().detach(conversation, document))

    def set_mode(self, conversation: ConversationId, mode: Mode) -> Conversation:
        return self._changed(self._store().set_mode(conversation, mode))

    def set_scope(self, conversation: ConversationId, scope: Scope | None) -> Conversation:
        """Where its questions look from now on; None: all its documents."""
        return self._changed(self._store().set_scope(conversation, scope))

    def set_instructions(self, conversation: ConversationId, instructions: str, anyway: bool = False) -> Conversation:
        """What the model is told from the next question on. Raises Unsteady for what looks like a clock or a random id,
        unless it is wanted `anyway`."""
        if not anyway:
            check_steady(instructions)
        return self._changed(self._store().set_instructions(conversation, instructions))

    def trash(self, conversation: ConversationId) -> Conversation:
        """Undone by `restore`; its turn is stopped."""
        turn = self._turns.running().get(conversation)
        if turn is not None:
            self._turns.cancel(turn)
        return self._changed(self._store().trash(conversation))

    def restore(self, conversation: ConversationId) -> Conversation:
        return self._changed(self._store().restore(conversation))

    def purge(self, conversation: ConversationId) -> None:
        """Out of the trash for good, KV state included."""
        self._store().purge(conversation)
        if (drop := self._dropping()) is not None:
            drop(conversation)
        else:
            forget_kept(self._kv, lambda name: name == conversation, None)
        self._emit(ConversationPurged(conversation))

    def fork(self, conversation: ConversationId, title: str = "", last: MessageId | None = None) -> Conversation:
        """A copy of the history, up to the message `last`, that shares all KV pages. Raises UserError when another
        conversation has that title."""
        copy = self._revisions.fork(conversation, title, last)
        if self._host.started:  # what it begins with is then kept when its source is deleted
            kept = None if last is None else len(history(in_prompt(self._store().messages(copy.id))))
            self._host.client.send(ForkState(conversation, copy.id, kept))
        return self._changed(copy)

    def _changed(self, conversation: Conversation) -> Conversation:
        self._emit(ConversationChanged(conversation))
        return conversation
