"""CutStore: the part of the conversation store that takes messages out of the context, and out of the conversation."""

from __future__ import annotations

from collections.abc import Sequence

import sqlite_utils

from app.core import asides, cuts, undoing
from app.core.asides import Aside
from app.core.cuts import Cut, CutId, Moved
from app.core.database import MigratedDatabase
from app.core.errors import NothingToDo, UserError
from app.core.exchanges import in_prompt
from app.core.records import MessageId, Placement
from app.core.rows import message_from_row
from engine.messages import ConversationId, Tokens


class CutStore:
    """Usable from every thread; each method is one transaction."""

    def __init__(self, database: MigratedDatabase) -> None:
        self._database = database

    def apply(self, conversation: ConversationId, cut: Cut, page_tokens: int, edit: float | None = None) -> CutId:
        """Takes turns out of the context; they stay in the conversation. Raises UserError where they are not in it.

        `edit`: see cuts.apply.
        """
        with self._database.transaction() as db:
            where = "conversation = ? AND superseded IS NULL AND cut IS NULL"
            rows = db.table("messages").rows_where(where, [conversation], order_by="id")
            messages = in_prompt([message_from_row(row) for row in rows])
            return cuts.apply(db, conversation, messages, cut, page_tokens, edit)

    def take_back_last(self, conversation: ConversationId, page_tokens: int) -> int:
        """Undoes the change that was made last, an edit with the removal that made room for it; returns how many
        messages went aside for it. Raises UserError."""
        with self._database.transaction() as db:
            last = undoing.last_change(db, conversation)
            if last is None:
                why = "Nothing was removed or edited here that is not there again."
                raise NothingToDo("Nothing can come back.", why, "Nothing has to be done.")
            if isinstance(last, Aside):
                return undoing.undo_aside(db, conversation, last, page_tokens)
            return undoing.undo_cut(db, last, page_tokens)

    def take_back_cut(self, cut: CutId) -> None:
        """Undoes that cut, be it the last change or not. Raises UserError where later changes rest on it."""
        with self._database.transaction() as db:
            undoing.check_apart(db, cut)
            undoing.undo_cut(db, cut)

    def take_back_aside(self, conversation: ConversationId, moment: float, page_tokens: int) -> int:
        """As `bring_back`, with redo."""
        with self._database.transaction() as db:
            return undoing.undo_aside(db, conversation, _aside(db, conversation, moment), page_tokens)

    def last_change(self, conversation: ConversationId) -> str:
        """The name of the change that `take_back_last` would take back, see undoing.change_name."""
        with self._database.reading() as db:
            return undoing.change_name(undoing.last_change(db, conversation))

    def last_undo(self, conversation: ConversationId) -> str:
        """The same of the undo that `redo` would do again."""
        with self._database.reading() as db:
            return undoing.undo_name(db, conversation)

    def redo(self, conversation: ConversationId, page_tokens: int, movable: bool) -> int:
        """See undoing.redo."""
        with self._database.transaction() as db:
            return undoing.redo(db, conversation, page_tokens, movable)

    def holding(self, conversation: ConversationId, message: MessageId | None) -> CutId | None:
        """The cut by which that message left the context, or the last one; None: there is none."""
        query = "SELECT max(cut) FROM messages WHERE conversation = ? AND superseded IS NULL AND ifnull(id = ?, TRUE)"
        with self._database.reading() as db:
            (cut,) = db.execute(query, [conversation, message]).fetchone()
            return None if cut is None else int(cut)

    def made_after(self, conversation: ConversationId, moment: float) -> bool:
        """Whether turns have left the context since then."""
        query = "SELECT count(*) FROM cuts WHERE conversation = ? AND made > ?"
        with self._database.reading() as db:
            return bool(db.execute(query, [conversation, moment]).fetchone()[0])

    def moved(self, conversation: ConversationId) -> Moved:
        with self._database.reading() as db:
            return cuts.moved(db, conversation)

    def settle(self, conversation: ConversationId, approximate: bool) -> None:
        with self._database.transaction() as db:
            cuts.settle(db, conversation, approximate)

    def adopt(self, left: MessageId, question: MessageId, tokens: Tokens, placement: Placement) -> None:
        """See cuts.adopt."""
        with self._database.transaction() as db:
            cuts.adopt(db, left, question, tokens, placement)

    def withdraw(self, exchange: Sequence[MessageId], cut: CutId | None = None) -> None:
        """A question with its empty answer was never asked. A cut whose head it took over may be undone again; `cut`,
        which made room for it, is."""
        with self._database.transaction() as db:
            for message in exchange:
                db.execute(
                    "UPDATE cuts SET message = NULL, ids = NULL, roles = NULL, placement = NULL WHERE message = ?",
                    [message],
                )
                db.table("messages").delete(message)
            if cut is not None:
                cuts.undo(db, cut)

    def set_aside(
        self,
        conversation: ConversationId,
        messages: Sequence[MessageId],
        kept_tokens: int,
        page_tokens: int,
        alone: bool = False,
    ) -> float:
        """Takes messages out of the conversation; their text stays in the file. Returns what `bring_back` wants.

        `alone`: what stands behind them does not rest on them, and stays.
        """
        with self._database.transaction() as db:
            return asides.set_aside(db, conversation, messages, kept_tokens, page_tokens, alone=alone)

    def bring_back(self, conversation: ConversationId, moment: float, page_tokens: int) -> int:
        """Undoes `set_aside`. What was asked since goes aside in turn; returns how many messages."""
        with self._database.transaction() as db:
            return asides.swap_in(db, conversation, _aside(db, conversation, moment), page_tokens)


def _aside(db: sqlite_utils.Database, conversation: ConversationId, moment: float) -> Aside:
    aside = asides.at(db, conversation, moment)
    if aside is None:
        why = "They are back already, or what they stood behind is not there."
        raise UserError("The removed messages cannot come back.", why, "Undo the later changes first.")
    return aside
