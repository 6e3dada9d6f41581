"""Messages that were set aside by a removal, an edit, another answer: each such group can take its place again.

A group stands behind one message that stayed. Whatever was asked there since is set aside in its turn when the group
comes back, so that nothing is lost either way. Functions over an open database; the store's methods call them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlite_utils

from app.core import cuts
from app.core.exchanges import in_prompt
from app.core.records import MessageId
from app.core.rows import message_from_row
from engine.messages import ConversationId


@dataclass(frozen=True)
class Aside:
    """The messages set aside at `moment` stood behind the message `after`, 0: at the beginning. `undone`: an undo has
    put them aside. `earlier`: what the engine had computed then, as cuts.restore wants it. `alone`: what came after it
    does not rest on it, so nothing goes aside when it comes back."""

    moment: float
    after: MessageId
    undone: bool
    earlier: str | None
    alone: bool = False


def set_aside(
    db: sqlite_utils.Database,
    conversation: ConversationId,
    messages: Sequence[MessageId],
    kept_tokens: int,
    page_tokens: int,
    undone: bool = False,
    alone: bool = False,
) -> float:
    """Takes messages out of the conversation; returns the moment by which they are found again."""
    (latest,) = db.execute("SELECT max(superseded) FROM messages WHERE conversation = ?", [conversation]).fetchone()
    moment = max(time.time(), (latest or 0.0) + 1e-3)
    after = _live(db, conversation, f"id < {int(min(messages, default=0))}", "max(id)")
    place = {"after": after, "undone": undone, "alone": alone}
    earlier = json.dumps({**json.loads(cuts.earlier_text(db, conversation)), **place})
    for message in messages:
        db.table("messages").update(message, {"superseded": moment, "earlier": earlier})
    cuts.keep_within(db, conversation, kept_tokens, page_tokens)
    return moment


def swap_in(db: sqlite_utils.Database, conversation: ConversationId, aside: Aside, page_tokens: int) -> int:
    """Brings the group back in place of what stands there now; returns how many messages went aside for it."""
    where = "conversation = ? AND superseded IS NULL"
    live = [message_from_row(row) for row in db.table("messages").rows_where(where, [conversation], order_by="id")]
    gone = [message.id for message in live if message.id > aside.after and not aside.alone]
    if gone:
        kept = sum(len(m.tokens) for m in in_prompt(m for m in live if m.id <= aside.after))
        set_aside(db, conversation, gone, kept, page_tokens, undone=not aside.undone)
    back = "UPDATE messages SET superseded = NULL WHERE conversation = ? AND superseded = ?"
    db.execute(back, [conversation, aside.moment])
    if not aside.alone:
        cuts.restore(db, conversation, aside.earlier, aside.moment)
    return len(gone)


def at(db: sqlite_utils.Database, conversation: ConversationId, moment: float) -> Aside | None:
    return next((aside for aside in _found(db, conversation) if aside.moment == moment), None)


def latest(db: sqlite_utils.Database, conversation: ConversationId, undone: bool) -> Aside | None:
    """The last group, of those that an undo has put aside or of the others, whose place is still there."""
    return next((aside for aside in _found(db, conversation) if aside.undone == undone), None)


def _found(db: sqlite_utils.Database, conversation: ConversationId) -> Iterator[Aside]:
    """Latest first."""
    query = (
        "SELECT superseded, min(id), earlier FROM messages WHERE conversation = ? AND superseded IS NOT NULL "
        "GROUP BY superseded ORDER BY superseded DESC"
    )
    for moment, first, earlier in db.execute(query, [conversation]).fetchall():
        known = json.loads(earlier) if earlier else {}
        after = known.get("after", _live(db, conversation, f"id < {int(first)}", "max(id)"))
        newer = _live(db, conversation, f"id > {int(first)}", "count(*)")
        # Those of the first version do not say where they stood: only what nothing was asked after is sure.
        there = not after or _live(db, conversation, f"id = {int(after)}", "count(*)")
        if there and ("after" in known or not newer):
            undone, alone = (bool(known.get(key)) for key in ("undone", "alone"))
            yield Aside(float(moment), MessageId(after), undone, earlier, alone)


def _live(db: sqlite_utils.Database, conversation: ConversationId, test: str, what: str) -> int:
    query = f"SELECT {what} FROM messages WHERE conversation = ? AND superseded IS NULL AND {test}"
    return int(db.execute(query, [conversation]).fetchone()[0] or 0)
