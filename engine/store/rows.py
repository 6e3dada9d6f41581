"""Statements on the index database, used by whoever changes it: each runs inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engine.kv.disk import Head
from engine.kv.keys import Key, state_key
from engine.kv.value import Costs
from engine.messages import is_scratch
from engine.store.holes import LOST, forget_holes, hole, holes_after, note_holes
from engine.store.record import RecordHeader

Row = tuple[Any, ...]
HEAD_COLUMNS = "conversation, last, tail, tokens, saved, pinned"
_MAX_GONE = 100_000
_MAX_REMOVED = 20_000


@dataclass(frozen=True)
class NewRecord:
    """A record that is durable in `segment` at `offset`."""

    header: RecordHeader
    segment: str
    offset: int


def read_head(row: Row) -> Head:
    return Head(row[0], Key(row[1]), Key(row[2]) if row[2] else None, row[3], row[4], bool(row[5]))


class transaction:
    """`with transaction(connection) as db:` commits, or rolls back on any error."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
                return
            except sqlite3.Error:
                self._rollback()
                raise
        self._rollback()

    def _rollback(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Several reads that see one state of the database."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def set_scanned(db: sqlite3.Connection, segment: str, end: int) -> None:
    db.execute(
        "INSERT INTO segments (name, scanned) VALUES (?, ?) ON CONFLICT (name) DO UPDATE "
        "SET scanned = max(scanned, excluded.scanned)",
        (segment, end),
    )


def insert_records(db: sqlite3.Connection, model: int, records: Iterable[NewRecord]) -> None:
    """Rows of pages and tails; what is known under the key already stays."""
    now = time.time()
    for new in records:
        header = new.header
        db.execute(
            "INSERT OR IGNORE INTO records (model, key, grp, parent, kind, start, tokens, segment, offset, length,"
            " payload, numerics, used) SELECT ?, ?, ?, ?, ?, ?, ?, id, ?, ?, ?, ?, ? FROM segments WHERE name = ?",
            (
                model, header.key, header.group, header.parent, header.kind, header.start, len(header.ids),
                new.offset, header.record_bytes, header.payload_offset, header.numerics, now, new.segment,
            ),
        )  # fmt: skip
        db.execute("DELETE FROM gone WHERE model = ? AND key = ?", (model, header.key))
        forget_holes(db, model, [header.key])


def put_head(db: sqlite3.Connection, model: int, head: Head) -> None:
    """Moves a conversation's end. The tail it had is removed if no other conversation ends there."""
    old = db.execute(
        "SELECT tail FROM heads WHERE model = ? AND conversation = ?", (model, head.conversation)
    ).fetchone()
    db.execute(
        "INSERT INTO heads (model, conversation, last, tail, tokens, saved) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last = excluded.last, tail = excluded.tail, tokens = excluded.tokens, "
        "saved = excluded.saved",
        (model, head.conversation, head.last, head.tail, head.tokens, head.saved),
    )
    db.execute("DELETE FROM meta WHERE name = ?", (refusal_name(model, head.conversation),))
    if old and old[0] and not _is_end(db, model, old[0]):
        remove_records(db, model, [Key(old[0])], "")


def remove_records(db: sqlite3.Connection, model: int, keys: Iterable[Key], reason: str) -> None:
    listed = list(keys)
    if reason in LOST:
        note_holes(db, model, listed, reason)
    else:
        forget_holes(db, model, listed)
    db.executemany("DELETE FROM records WHERE model = ? AND key = ?", ((model, key) for key in listed))
    if reason:
        now = time.time()
        db.executemany("INSERT OR REPLACE INTO gone VALUES (?, ?, ?, ?)", ((model, key, reason, now) for key in listed))
        db.execute("DELETE FROM gone WHERE at < (SELECT at FROM gone ORDER BY at DESC LIMIT 1 OFFSET ?)", (_MAX_GONE,))
    db.executemany("INSERT INTO removed (model, key) VALUES (?, ?)", ((model, key) for key in listed))
    db.execute("DELETE FROM removed WHERE seq <= (SELECT max(seq) FROM removed) - ?", (_MAX_REMOVED,))


_LOOKED_BACK_ON = """
WITH RECURSIVE up (key, depth) AS (
  SELECT last, 0 FROM heads WHERE model = :model
  UNION SELECT parent, depth + 1 FROM up JOIN records ON model = :model AND records.key = up.key AND grp = 0
  WHERE depth < :depth)
SELECT key FROM up
"""


def drop_groups(db: sqlite3.Connection, model: int, keys: Iterable[Key], since: Iterable[Key], kept: int) -> list[Key]:
    """Removes the rows of pages in all layer groups but the `kept` first; returns of which pages.

    Nothing where one of the pages `since` then is not there in all groups, nor of the pages as many before the end of a
    conversation. The other rows get a new number, so that others read them again.
    """
    window = list(since)
    query = "SELECT 1 FROM records WHERE model = ? AND key = ? AND grp = ?"
    if not all(db.execute(query, (model, key, kept)).fetchone() for key in window):
        return []
    near = {row[0] for row in db.execute(_LOOKED_BACK_ON, {"model": model, "depth": len(window) - 1})}
    dropped = [key for key in keys if key not in near]
    for key in dropped:
        db.execute("DELETE FROM records WHERE model = ? AND key = ? AND grp >= ?", (model, key, kept))
        query = "SELECT seq, segment, offset FROM records WHERE model = ? AND key = ?"
        for seq, segment, offset in db.execute(query, (model, key)).fetchall():
            move_record(db, seq, segment, offset)
    return dropped


def forget_head(db: sqlite3.Connection, model: int, conversation: str, delete: bool) -> None:
    """Removes a head; `delete` also removes the records that only it used. Why is noted where a reader may ask."""
    name = (model, conversation)
    row = db.execute("SELECT last, tail FROM heads WHERE model = ? AND conversation = ?", name).fetchone()
    db.execute("DELETE FROM heads WHERE model = ? AND conversation = ?", name)
    db.execute("DELETE FROM meta WHERE name = ?", (refusal_name(model, conversation),))
    if row and delete:
        unused = unused_path(db, model, row[0], row[1])
        reason = "" if is_scratch(conversation) else "dropped"
        remove_records(db, model, [*unused, *_states_after(db, model, unused)], reason)


def unused_path(db: sqlite3.Connection, model: int, last: bytes, tail: bytes | None) -> list[Key]:
    """The tail and the pages up from `last` that no head ends at or goes through, with what was left standing on them
    (the conversation's earlier ends, before an edit); lost ones too."""
    unused: dict[Key, None] = {}
    for key in filter(None, (tail, last)):
        row: Row | None = (key,)
        while row and (also := _without_head(db, model, row[0], unused)) is not None:
            unused.update(dict.fromkeys(also))
            query = "SELECT parent FROM records WHERE model = ? AND key = ?"
            row = db.execute(query, (model, row[0])).fetchone() or hole(db, model, row[0])
    return list(unused)


def _without_head(db: sqlite3.Connection, model: int, key: bytes, known: Container[Key]) -> list[Key] | None:
    """The page and what stands on it, but for `known`; None where a head ends at any of these."""
    found, looked_at = list[Key](), [Key(key)]
    while looked_at:
        page = looked_at.pop()
        if _is_end(db, model, page):
            return None
        found.append(page)
        looked_at.extend(child for child in _children(db, model, page) if child not in known)
    return found


def _states_after(db: sqlite3.Connection, model: int, keys: Iterable[Key]) -> set[Key]:
    """Snapshots of states at the ends of pages, and within what follows them."""
    query = "SELECT key FROM records WHERE model = ? AND (parent = ? OR key = ?) AND kind = 4"
    found = (db.execute(query, (model, key, state_key(key))).fetchall() for key in keys)
    return {Key(row[0]) for rows in found for row in rows}


def _children(db: sqlite3.Connection, model: int, key: bytes) -> set[Key]:
    query = "SELECT key FROM records WHERE model = ? AND parent = ? AND kind < 2"
    return {Key(row[0]) for row in db.execute(query, (model, key))} | {*map(Key, holes_after(db, model, key))}


def _is_end(db: sqlite3.Connection, model: int, key: bytes) -> bool:
    query = "SELECT 1 FROM heads WHERE model = ? AND (last = ? OR tail = ?) LIMIT 1"
    return db.execute(query, (model, key, key)).fetchone() is not None


def refusal_name(model: int, conversation: str) -> str:
    """Where `meta` says that the end of a conversation was not saved; see engine.store.refusals."""
    return f"refused {model} {conversation}"


def counter(db: sqlite3.Connection, name: str) -> int:
    row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def set_costs(db: sqlite3.Connection, model: int, seconds_per_token: float, depth_scale: float) -> None:
    text = json.dumps([seconds_per_token, depth_scale])
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"costs {model}", text))


def costs(db: sqlite3.Connection, model: int) -> Costs:
    """What computing with a model was last said to cost; the default where nobody said."""
    row = db.execute("SELECT value FROM meta WHERE name = ?", (f"costs {model}",)).fetchone()
    try:
        seconds, depth = map(float, json.loads(row[0])) if row else (Costs.seconds_per_token, Costs.depth_scale)
        return Costs(seconds, depth)
    except (ValueError, TypeError):
        return Costs()


def add(db: sqlite3.Connection, name: str, amount: int) -> None:
    db.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value", (name, amount)
    )


def model_id(db: sqlite3.Connection, fingerprint: bytes, name: str = "", layout: str = "") -> int:
    """The row of a model, made if it is new; a name and layout are added once they are known."""
    db.execute("INSERT OR IGNORE INTO models (fingerprint) VALUES (?)", (fingerprint,))
    if name or layout:
        db.execute(
            "UPDATE models SET name = ?, layout = ? WHERE fingerprint = ? AND (name != ? OR layout != ?)",
            (name, layout, fingerprint, name, layout),
        )
    return int(db.execute("SELECT id FROM models WHERE fingerprint = ?", (fingerprint,)).fetchone()[0])


def move_record(db: sqlite3.Connection, seq: int, segment: int, offset: int) -> None:
    """The record of a row lies elsewhere now. The row gets a new number, so that others read it again."""
    db.execute(
        "INSERT OR REPLACE INTO records (model, key, grp, parent, kind, start, tokens, segment, offset, length,"
        " payload, numerics, used) SELECT model, key, grp, parent, kind, start, tokens, ?, ?, length, payload,"
        " numerics, used FROM records WHERE seq = ?",
        (segment, offset, seq),
    )


def tokens_in(db: sqlite3.Connection, name: str) -> int:
    """Of the pages and tails in a segment; each once, whatever layer groups it has."""
    query = (
        "SELECT coalesce(sum(tokens), 0) FROM (SELECT max(tokens) AS tokens FROM records WHERE kind < 2 AND segment = "
        "(SELECT id FROM segments WHERE name = ?) GROUP BY model, key)"
    )
    return int(db.execute(query, (name,)).fetchone()[0])


def drop_segment(db: sqlite3.Connection, name: str, reason: str) -> None:
    """Rows of a segment that is not there any more."""
    found = db.execute(
        "SELECT model, key FROM records WHERE segment = (SELECT id FROM segments WHERE name = ?)", (name,)
    ).fetchall()
    for model in {row[0] for row in found}:
        remove_records(db, model, [Key(key) for other, key in found if other == model], reason)
    db.execute("DELETE FROM segments WHERE name = ?", (name,))
