"""Turns that leave the context while they stay in the conversation, and how that is undone.

A cut keeps the head of one question's message (header, documents, the template's opening) and drops everything from
there to where a later question begins; that question takes the head over. Stored ids stay what they are, so what
follows is either computed again or moved up. Functions over an open database; the store's methods call them.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal

import sqlite_utils

from app.core.errors import UserError
from app.core.heads import Head, head_of, joined
from app.core.records import Message, MessageId, Placement
from app.core.rows import placement_text, token_blobs, tokens_from_blobs
from engine.kv.shift import next_shifts, shifts_within
from engine.messages import ConversationId, Removal, Shift, Tokens

CutId = int
HowMoved = Literal["recompute", "shift"]


@dataclass(frozen=True)
class Cut:
    """What goes: from behind the head of `first`, a question, to the question `kept`; None: to the end.

    `way`: whether the rest is computed again, or moved up (approximate).
    """

    first: MessageId
    kept: MessageId | None
    way: HowMoved = "recompute"


@dataclass(frozen=True)
class Moved:
    """How the engine is to see a conversation: ranges that were taken out, and one that still has to be."""

    shifts: tuple[Shift, ...] = ()
    removal: Removal | None = None


def apply(
    db: sqlite_utils.Database,
    conversation: ConversationId,
    messages: tuple[Message, ...],
    cut: Cut,
    page_tokens: int,
    edit: float | None = None,
) -> CutId:
    """Takes the turns out. `messages`: those in the context, in order. `edit`: the moment at which an edit has put
    messages aside that this makes room for."""
    first, stop = _places(messages, cut)
    left, head = messages[first:stop], head_of(messages[first])
    kept = messages[stop] if stop < len(messages) else None
    position = sum(len(message.tokens) for message in messages[:first]) + len(head.tokens)
    removed = _removed(left, head, kept)
    before = moved(db, conversation)
    removal = Removal(position, removed, before.shifts) if cut.way == "shift" and kept is not None else None
    shifts = (
        next_shifts(before.shifts, position, removed, page_tokens)
        if removal
        else shifts_within(before.shifts, position, page_tokens)
    )
    number = _note(db, conversation, kept, before, removal)
    earlier = {**json.loads(earlier_text(db, conversation)), "edit": edit}
    made = max(time.time(), (edit or 0.0) + 1e-3)  # behind the edit, by whatever clock
    db.table("cuts").update(number, {"earlier": json.dumps(earlier), "made": made})
    if kept is not None:
        _take_over(db, kept, head)
    for message in left:
        db.table("messages").update(message.id, {"cut": number})
    _, computed = _computed(db, conversation)
    computed = max(min(computed, position), computed - len(removed)) if kept else min(computed, position)
    db.table("conversations").update(conversation, {"shifts": _shifts_text(shifts), "computed": computed})
    return number


def undo(db: sqlite_utils.Database, number: CutId) -> ConversationId:
    """The turns are in the context again; what of it was computed anew meanwhile is found or computed once more."""
    rows = list(db.table("cuts").rows_where("id = ?", [number]))
    if not rows:
        raise UserError("Those turns cannot come back.", "They were taken out of another copy.", "Ask again there.")
    (row,) = rows
    conversation = ConversationId(row["conversation"])
    _, since = _computed(db, conversation)
    since -= _context_tokens(db, conversation)
    if row["message"] is not None:
        values = {"ids": row["ids"], "roles": row["roles"], "placement": row["placement"]}
        db.table("messages").update(row["message"], values)
    db.execute("UPDATE messages SET cut = NULL WHERE cut = ?", [number])
    if not _foreign(db, conversation, row["earlier"]):
        db.table("conversations").update(conversation, {"shifts": row["shifts"]})
        _restore_computed(db, conversation, row["earlier"])
        _count_later_turns(db, conversation, row["made"], since)
    db.table("cuts").delete(number)
    return conversation


def moved(db: sqlite_utils.Database, conversation: ConversationId) -> Moved:
    """What is to be said to the engine with the conversation's tokens."""
    shifts = _shifts(str(db.table("conversations").get(conversation)["shifts"]))
    rows = db.table("cuts").rows_where("conversation = ?", [conversation], order_by="id DESC", limit=1)
    for row in rows:
        if row["removal"] is not None and shifts:
            data = json.loads(row["removal"])
            return Moved(shifts, Removal(data["position"], Tokens(tuple(data["ids"]), tuple(data["roles"])),
                                         _shifts(row["shifts"])))  # fmt: skip
    return Moved(shifts)


def adopt(
    db: sqlite_utils.Database, left: MessageId, question: MessageId, tokens: Tokens, placement: Placement
) -> None:
    """A new question has taken over the head of `left`; `tokens` and `placement`: what it is without that head."""
    values = {"message": question, **token_blobs(tokens), "placement": placement_text(placement)}
    db.execute(
        "UPDATE cuts SET message = :message, ids = :ids, roles = :roles, placement = :placement "
        "WHERE id = (SELECT cut FROM messages WHERE id = :left) AND message IS NULL",
        {**values, "left": left},
    )


def settle(db: sqlite_utils.Database, conversation: ConversationId, approximate: bool) -> None:
    """After a turn: the removal is done. A state that is not approximate was computed as it stands."""
    db.execute("UPDATE cuts SET removal = NULL WHERE conversation = ? AND removal IS NOT NULL", [conversation])
    if not approximate:
        db.table("conversations").update(conversation, {"shifts": "[]"})


def note_computed(db: sqlite_utils.Database, message: MessageId, computed: int) -> None:
    """So many leading tokens of the message's conversation have gone through the model by now."""
    of_message = "id = (SELECT conversation FROM messages WHERE id = ?)"
    db.execute(f"UPDATE conversations SET computed = max(computed, ?) WHERE {of_message}", [computed, message])


def keep_within(db: sqlite_utils.Database, conversation: ConversationId, tokens: int, page_tokens: int) -> None:
    """Only the first `tokens` tokens of the history are left: later messages were set aside."""
    known = moved(db, conversation).shifts
    _, computed = _computed(db, conversation)
    values = {"shifts": _shifts_text(shifts_within(known, tokens, page_tokens)), "computed": min(computed, tokens)}
    db.table("conversations").update(conversation, values)


def earlier_text(db: sqlite_utils.Database, conversation: ConversationId) -> str:
    """What the engine has computed of the conversation now, as `restore` wants it."""
    row = db.table("conversations").get(conversation)
    return json.dumps({key: row[key] for key in ("tokenizer", "computed", "shifts")})


def restore(db: sqlite_utils.Database, conversation: ConversationId, earlier: str | None, since: float) -> None:
    """Messages set aside at `since` are back: what was computed of them is known again, and what of it was moved."""
    if _foreign(db, conversation, earlier):
        return
    _restore_computed(db, conversation, earlier)
    cut = db.execute("SELECT count(*) FROM cuts WHERE conversation = ? AND made > ?", [conversation, since]).fetchone()
    if earlier and not cut[0]:
        db.table("conversations").update(conversation, {"shifts": json.loads(earlier)["shifts"]})


def _foreign(db: sqlite_utils.Database, conversation: ConversationId, earlier: str | None) -> bool:
    """Whether what is back was written with another tokenizer: its ids mean nothing now, so all are made anew before
    the next question."""
    tokenizer, _ = _computed(db, conversation)
    if not earlier or json.loads(earlier)["tokenizer"] in ("", tokenizer):
        return False
    db.table("conversations").update(conversation, {"tokenizer": "mixed", "computed": 0, "shifts": "[]"})
    return True


def _restore_computed(db: sqlite_utils.Database, conversation: ConversationId, earlier: str | None) -> None:
    known = json.loads(earlier) if earlier else {}
    tokenizer, computed = _computed(db, conversation)
    if known.get("tokenizer") == tokenizer:
        db.table("conversations").update(conversation, {"computed": max(computed, known["computed"])})


def _context_tokens(db: sqlite_utils.Database, conversation: ConversationId) -> int:
    query = "SELECT sum(length(roles)) FROM messages WHERE conversation = ? AND superseded IS NULL AND cut IS NULL"
    return int(db.execute(query, [conversation]).fetchone()[0] or 0)


def _count_later_turns(db: sqlite_utils.Database, conversation: ConversationId, made: float, short: int) -> None:
    """What was asked since a cut that is undone has been computed too, without the turns that are back. `short`: by how
    much less than the context (-1: all but the last sampled token)."""
    query = "SELECT count(*) FROM messages WHERE conversation = ? AND superseded IS NULL AND cut IS NULL AND created>?"
    if db.execute(query, [conversation, made]).fetchone()[0]:
        _, known = _computed(db, conversation)
        computed = max(known, _context_tokens(db, conversation) + short)
        db.table("conversations").update(conversation, {"computed": computed})


def _places(messages: tuple[Message, ...], cut: Cut) -> tuple[int, int]:
    ids = [message.id for message in messages]
    if cut.first not in ids or (cut.kept is not None and cut.kept not in ids):
        raise UserError("The turn is not in the context.", "It has left it already.", "Open the conversation again.")
    first = ids.index(cut.first)
    return first, len(ids) if cut.kept is None else ids.index(cut.kept)


def _removed(left: tuple[Message, ...], head: Head, kept: Message | None) -> Tokens:
    gone = Tokens()
    for message in left:
        gone += message.tokens
    if kept is not None:
        end = kept.placement.head_tokens
        gone += Tokens(kept.tokens.ids[:end], kept.tokens.roles[:end])
    start = len(head.tokens)
    return Tokens(gone.ids[start:], gone.roles[start:])


def _take_over(db: sqlite_utils.Database, kept: Message, head: Head) -> None:
    end = kept.placement.head_tokens
    tokens = head.tokens + Tokens(kept.tokens.ids[end:], kept.tokens.roles[end:])
    placement = joined(head.placement, kept.placement, len(head.tokens))
    db.table("messages").update(kept.id, {**token_blobs(tokens), "placement": placement_text(placement)})


def _note(
    db: sqlite_utils.Database,
    conversation: ConversationId,
    kept: Message | None,
    before: Moved,
    removal: Removal | None,
) -> CutId:
    row: dict[str, Any] = {"conversation": conversation, "made": time.time(), "shifts": _shifts_text(before.shifts)}
    if kept is not None:
        row |= {"message": kept.id, **token_blobs(kept.tokens), "placement": placement_text(kept.placement)}
    if removal is not None:
        data = {"position": removal.position, "ids": removal.removed.ids, "roles": removal.removed.roles}
        row["removal"] = json.dumps(data)
    return int(str(db.table("cuts").insert(row, pk="id").last_pk))


def _computed(db: sqlite_utils.Database, conversation: ConversationId) -> tuple[str, int]:
    row = db.table("conversations").get(conversation)
    return str(row["tokenizer"]), int(row["computed"])


def _shifts_text(shifts: tuple[Shift, ...]) -> str:
    return json.dumps([[s.position, token_hex(s.removed)] for s in shifts])


def token_hex(tokens: Tokens) -> list[str]:
    return [blob.hex() for blob in token_blobs(tokens).values()]


def _shifts(text: str) -> tuple[Shift, ...]:
    return tuple(
        Shift(position, tokens_from_blobs(bytes.fromhex(ids), bytes.fromhex(roles)))
        for position, (ids, roles) in json.loads(text)
    )
