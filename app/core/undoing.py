"""Taking changes of a history back, and doing again what was taken back last.

Each undo is noted with the moment of the change that stands last behind it. `redo` acts on the newest note and only
while that change is still the last: another edit or removal since would make it something else than the last undo.
Functions over an open database; the store's methods call them.
"""

from __future__ import annotations

import json
from typing import Any

import sqlite_utils

from app.core import asides, cuts
from app.core.asides import Aside
from app.core.cuts import Cut, CutId
from app.core.errors import NothingToDo, UserError
from app.core.exchanges import in_prompt
from app.core.records import Message, MessageId
from app.core.rows import message_from_row
from engine.messages import ConversationId


def last_change(db: sqlite_utils.Database, conversation: ConversationId) -> CutId | Aside | None:
    """The change that stands and was made last."""
    query = "SELECT id, made FROM cuts WHERE conversation = ? ORDER BY id DESC LIMIT 1"
    cut, aside = db.execute(query, [conversation]).fetchone(), asides.latest(db, conversation, undone=False)
    if aside is not None and (cut is None or aside.moment > cut[1]):
        return aside
    return None if cut is None else int(cut[0])


def change_name(change: CutId | Aside | float | None) -> str:
    """By which the operation that made a change is found again; a float: the moment of an aside; "": of none."""
    moment = change.moment if isinstance(change, Aside) else change
    return "" if moment is None else f"aside {moment!r}" if isinstance(moment, float) else f"cut {moment}"


def undo_name(db: sqlite_utils.Database, conversation: ConversationId) -> str:
    """The same for the undo that `redo` would do again."""
    (last,) = db.execute("SELECT max(id) FROM undone WHERE conversation = ?", [conversation]).fetchone()
    return "" if last is None else f"undo {last}"


def undo_cut(db: sqlite_utils.Database, cut: CutId, page_tokens: int | None = None) -> int:
    """An edit that the cut made room for is taken back with it; returns how many messages went aside for that.

    `page_tokens` None: the edit stays. Raises UserError where the cut was made in another conversation.
    """
    row = _row(db, cut)
    conversation, edit = ConversationId(str(row["conversation"])), json.loads(row["earlier"] or "{}").get("edit")
    before, made = _standing(db, conversation), _as_made(db, cut)
    aside = asides.at(db, conversation, edit) if edit is not None and page_tokens is not None else None
    cuts.undo(db, cut)
    what: dict[str, Any] = {"cut": [made.first, made.kept, made.way], "edit": edit}
    gone = 0
    if aside is not None and page_tokens is not None:
        gone, again = _swap_in(db, conversation, aside, page_tokens)
        what |= again
    _note(db, conversation, before, what)
    return gone


def undo_aside(db: sqlite_utils.Database, conversation: ConversationId, aside: Aside, page_tokens: int) -> int:
    """What was asked since goes aside in turn; returns how many messages."""
    before = _standing(db, conversation)
    gone, again = _swap_in(db, conversation, aside, page_tokens)
    _note(db, conversation, before, again)
    return gone


def _swap_in(
    db: sqlite_utils.Database, conversation: ConversationId, aside: Aside, page_tokens: int
) -> tuple[int, dict[str, Any]]:
    """How many messages went aside for it, and how that is done again."""
    back = [m for (m,) in db.execute("SELECT id FROM messages WHERE superseded = ?", [aside.moment]).fetchall()]
    gone = asides.swap_in(db, conversation, aside, page_tokens)
    if aside.alone:
        return gone, {"alone": back}
    since = asides.latest(db, conversation, undone=True) if gone else None
    return gone, {"trim": aside.after} if since is None else {"aside": since.moment}


def check_apart(db: sqlite_utils.Database, cut: CutId) -> None:
    """Raises UserError where turns cannot come back before later changes are taken back: another cut, or an edit that
    put the question aside which took their place, or that happened while state was moved."""
    row = _row(db, cut)
    conversation = ConversationId(str(row["conversation"]))
    later = db.execute("SELECT count(*) FROM cuts WHERE conversation = ? AND id > ?", [conversation, cut]).fetchone()
    if later[0] or not _in_context(db, row["message"]) or _moved_between(db, conversation, row):
        next = "Undo the later changes first (“Undo the last edit or removal”)."
        raise UserError("These turns cannot come back yet.", "Later changes rest on their removal.", next)


def redo(db: sqlite_utils.Database, conversation: ConversationId, page_tokens: int, movable: bool) -> int:
    """Does again what the last undo took back; returns how many messages went aside for it.

    `movable`: turns may be moved up again where they were. Raises UserError where there is nothing to redo.
    """
    rows = list(db.table("undone").rows_where("conversation = ?", [conversation], order_by="id DESC", limit=1))
    if not rows or rows[0]["standing"] != _standing(db, conversation):
        why = "Something else was changed since the last undo." if rows else "Nothing was undone here."
        raise NothingToDo("There is nothing to redo.", why, "Nothing has to be done.")
    gone = _again(db, conversation, json.loads(rows[0]["what"]), page_tokens, movable)
    db.table("undone").delete(rows[0]["id"])
    db.execute("UPDATE undone SET standing = ? WHERE conversation = ?", [_standing(db, conversation), conversation])
    return gone


def _again(
    db: sqlite_utils.Database, conversation: ConversationId, what: dict[str, Any], page_tokens: int, movable: bool
) -> int:
    """A cut comes behind the edit that it made room for."""
    gone, edit = 0, what.get("edit")
    if "alone" in what:
        kept = sum(len(m.tokens) for m in in_prompt(_live(db, conversation)))
        asides.set_aside(db, conversation, what["alone"], kept, page_tokens, alone=True)
        gone = len(what["alone"])
    if "trim" in what or "aside" in what:
        gone = _aside_again(db, conversation, what, page_tokens)
        stands = asides.latest(db, conversation, undone=False)
        edit = stands.moment if stands is not None else None
    if "cut" in what:
        first, kept, way = what["cut"]
        inside = in_prompt(_live(db, conversation))
        cuts.apply(db, conversation, inside, Cut(first, kept, way if movable else "recompute"), page_tokens, edit)
    return gone


def _aside_again(
    db: sqlite_utils.Database, conversation: ConversationId, what: dict[str, Any], page_tokens: int
) -> int:
    if "trim" in what:
        live = _live(db, conversation)
        gone = [message.id for message in live if message.id > what["trim"]]
        kept_tokens = sum(len(m.tokens) for m in in_prompt(m for m in live if m.id <= what["trim"]))
        asides.set_aside(db, conversation, gone, kept_tokens, page_tokens)
        return len(gone)
    aside = asides.at(db, conversation, what["aside"])
    if aside is None:
        raise NothingToDo("There is nothing to redo.", "What it stood behind is not there.", "Nothing has to be done.")
    return asides.swap_in(db, conversation, aside, page_tokens)


def _note(db: sqlite_utils.Database, conversation: ConversationId, before: float, what: dict[str, Any]) -> None:
    """`before`: when the change was made that stood last before the undo; older notes that rest on another go."""
    db.execute("DELETE FROM undone WHERE conversation = ? AND standing != ?", [conversation, before])
    standing = _standing(db, conversation)
    db.execute("UPDATE undone SET standing = ? WHERE conversation = ?", [standing, conversation])
    db.table("undone").insert({"conversation": conversation, "standing": standing, "what": json.dumps(what)})


def _standing(db: sqlite_utils.Database, conversation: ConversationId) -> float:
    """When the last change that stands was made; 0: there is none."""
    last = last_change(db, conversation)
    if last is None:
        return 0.0
    return last.moment if isinstance(last, Aside) else float(_row(db, last)["made"])


def _as_made(db: sqlite_utils.Database, number: CutId) -> Cut:
    """The cut as it was asked for, so that it can be made again."""
    row = _row(db, number)
    (first,) = db.execute("SELECT min(id) FROM messages WHERE cut = ?", [number]).fetchone()
    now, before = json.loads(db.table("conversations").get(row["conversation"])["shifts"]), json.loads(row["shifts"])
    moved = any(shift not in before for shift in now)
    return Cut(MessageId(first), row["message"], "shift" if moved else "recompute")


def _row(db: sqlite_utils.Database, cut: CutId) -> dict[str, Any]:
    rows: list[dict[str, Any]] = list(db.table("cuts").rows_where("id = ?", [cut]))
    if not rows:
        raise UserError("Those turns cannot come back.", "They were taken out of another copy.", "Ask again there.")
    return rows[0]


def _in_context(db: sqlite_utils.Database, question: MessageId | None) -> bool:
    """Whether the question that took the head over is where it was; None: none has."""
    query = "SELECT count(*) FROM messages WHERE id = ? AND superseded IS NULL AND cut IS NULL"
    return question is None or bool(db.execute(query, [question]).fetchone()[0])


def _moved_between(db: sqlite_utils.Database, conversation: ConversationId, row: dict[str, Any]) -> bool:
    """Whether messages were set aside after that cut, and moved state plays a part in any of it."""
    query = "SELECT DISTINCT earlier FROM messages WHERE conversation = ? AND superseded > ? AND earlier IS NOT NULL"
    later = [json.loads(earlier)["shifts"] for (earlier,) in db.execute(query, [conversation, row["made"]]).fetchall()]
    now = db.table("conversations").get(conversation)["shifts"]
    last = last_change(db, conversation)
    return last != row["id"] and any(shifts != "[]" for shifts in (*later, now, row["shifts"]))


def _live(db: sqlite_utils.Database, conversation: ConversationId) -> tuple[Message, ...]:
    rows = db.table("messages").rows_where("conversation = ? AND superseded IS NULL", [conversation], order_by="id")
    return tuple(message_from_row(row) for row in rows)
