"""The index in memory and in SQLite: which record holds which key of a model, and where conversations end.

Look-ups go to a dictionary; `refresh` takes over what others committed. Writing is the I/O thread's, on a
connection
of its own, so that a checkpoint never makes a look-up wait.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.kv.disk import DiskRecord, Head, Location
from engine.kv.keys import Key
from engine.store.record import Kind, RecordHeader
from engine.store.schema import connect

Row = tuple[Any, ...]
_COLUMNS = "key, grp, parent, kind, start, tokens, segment, offset, length, payload, numerics, seq"
_HEAD_COLUMNS = "conversation, last, tail, tokens, saved, pinned"
_MAX_GONE = 100_000


@dataclass(frozen=True)
class NewRecord:
    """A record that is durable in `segment` at `offset`."""

    header: RecordHeader
    segment: str
    offset: int


class Index:
    """Rows of one model (`fingerprint`), shared with other processes. sqlite3.Error from any method: it is
    damaged.
    """

    def __init__(self, path: Path, fingerprint: bytes, groups: int, name: str = "", layout: str = "") -> None:
        self._groups = groups
        self._lock = threading.Lock()  # of the reading connection
        self._write_lock = threading.Lock()
        self._reader = connect(path)
        self._writer = connect(path)
        self._rows: dict[bytes, dict[int, Row]] = {}
        self._heads: dict[str, Head] = {}
        self._segments: dict[int, str] = {}
        self._version, self._last, self._removals = -1, 0, -1
        self.model = _model_id(self._writer, fingerprint, name, layout)
        self.refresh()

    def close(self) -> None:
        with self._lock, self._write_lock:
            self._reader.close()
            self._writer.close()

    # --- look-ups ---

    def find(self, key: Key) -> DiskRecord | None:
        """The record if all its layer groups are there."""
        rows = self._rows.get(key)
        if rows is None or len(rows) < self._groups:
            return None
        parts = [self._location(rows[group]) for group in range(self._groups)]
        first = rows[0]
        return DiskRecord(
            key, Key(first[2]), first[3] == Kind.TAIL, first[4], first[5], first[10], tuple(p for p in parts
            if p)
        )  # fmt: skip

    def children(self, parent: Key) -> list[DiskRecord]:
        with self._lock:
            query = "SELECT DISTINCT key FROM records WHERE model = ? AND parent = ?"
            keys = [Key(row[0]) for row in self._reader.execute(query, (self.model, parent))]
        return [record for key in keys if (record := self.find(key)) is not None]

    def count(self) -> int:
        return len(self._rows)

    def heads(self) -> dict[str, Head]:
        return dict(self._heads)

    def gone(self, key: Key) -> str:
        """Why a record that was here is not."""
        with self._lock:
            query = "SELECT reason FROM gone WHERE model = ? AND key = ?"
            row = self._reader.execute(query, (self.model, key)).fetchone()
        return str(row[0]) if row else ""

    def refresh(self) -> bool:
        """Takes over what was committed since; True if there was something."""
        with self._lock:
            version = self._reader.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return False
            removals = counter(self._reader, "removals")
            if removals != self._removals:
                self._rows, self._last, self._removals = {}, 0, removals
            self._load()
            self._version = version
            return True

    def _load(self) -> None:
        self._segments = dict(self._reader.execute("SELECT id, name FROM segments"))
        query = f"SELECT {_COLUMNS} FROM records WHERE model = ? AND seq > ? ORDER BY seq"
        rows = self._rows
        for row in self._reader.execute(query, (self.model, self._last)):
            rows.setdefault(row[0], {})[row[1]] = row
            self._last = row[11]
        heads = self._reader.execute(f"SELECT {_HEAD_COLUMNS} FROM heads WHERE model = ?", (self.model,))
        self._heads = {row[0]: _head(row) for row in heads}

    def _location(self, row: Row) -> Location:
        return Location(self._segments.get(row[6], ""), row[7], row[8], row[9])

    # --- writing: the I/O thread ---

    def publish(self, records: Sequence[NewRecord], ends: dict[str, int], heads: Iterable[Head], written: int) -> None:
        """One transaction: rows of durable records, how far their segments are known, and heads that refer
        to them.
        """
        with self._write_lock, transaction(self._writer) as db:
            for segment, end in ends.items():
                set_scanned(db, segment, end)
            insert_records(db, self.model, records)
            for head in heads:
                put_head(db, self.model, head)
            _add(db, "written", written)

    def forget(self, conversation: str, delete: bool) -> None:
        """Removes a head; `delete` also removes the records that only it used."""
        with self._write_lock, transaction(self._writer) as db:
            name = (self.model, conversation)
            row = db.execute("SELECT last, tail FROM heads WHERE model = ? AND conversation = ?", name).fetchone()
            db.execute("DELETE FROM heads WHERE model = ? AND conversation = ?", name)
            if row and delete:
                remove_records(db, self.model, unused_path(db, self.model, row[0], row[1]), "")

    def hide(self, key: Key) -> None:
        """The record counts as absent at once; `remove` makes that last."""
        self._rows.pop(key, None)

    def maintain(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Runs maintenance on the writing connection."""
        with self._write_lock:
            work(self._writer)

    def remove(self, keys: Iterable[Key], reason: str) -> None:
        """Takes records out, in every layer group; `reason` is kept for `gone` unless it is empty."""
        with self._write_lock, transaction(self._writer) as db:
            remove_records(db, self.model, keys, reason)

    def touch(self, keys: Iterable[Key]) -> None:
        """Notes that records were used now."""
        now = time.time()
        with self._write_lock, transaction(self._writer) as db:
            db.executemany(
                "UPDATE records SET used = ? WHERE model = ? AND key = ?", ((now, self.model, k) for k in keys)
            )


def _head(row: Row) -> Head:
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
    if old and old[0] and not _is_end(db, model, old[0]):
        remove_records(db, model, [Key(old[0])], "")


def remove_records(db: sqlite3.Connection, model: int, keys: Iterable[Key], reason: str) -> None:
    listed = list(keys)
    db.executemany("DELETE FROM records WHERE model = ? AND key = ?", ((model, key) for key in listed))
    if reason:
        now = time.time()
        db.executemany("INSERT OR REPLACE INTO gone VALUES (?, ?, ?, ?)", ((model, key, reason, now) for key in listed))
        db.execute("DELETE FROM gone WHERE at < (SELECT at FROM gone ORDER BY at DESC LIMIT 1 OFFSET ?)", (_MAX_GONE,))
    if listed:
        _add(db, "removals", 1)


def unused_path(db: sqlite3.Connection, model: int, last: bytes, tail: bytes | None) -> list[Key]:
    """The tail and the pages up from `last` that nothing else continues and no head ends at."""
    unused: list[Key] = []
    for key in filter(None, (tail, last)):
        row: Row | None = (key,)
        while row and not _is_end(db, model, row[0]) and _children(db, model, row[0]) <= {*unused}:
            unused.append(Key(row[0]))
            row = db.execute("SELECT parent FROM records WHERE model = ? AND key = ?", (model, row[0])).fetchone()
    return unused


def _children(db: sqlite3.Connection, model: int, key: bytes) -> set[Key]:
    return {Key(row[0]) for row in db.execute("SELECT key FROM records WHERE model = ? AND parent = ?", (model, key))}


def _is_end(db: sqlite3.Connection, model: int, key: bytes) -> bool:
    query = "SELECT 1 FROM heads WHERE model = ? AND (last = ? OR tail = ?) LIMIT 1"
    return db.execute(query, (model, key, key)).fetchone() is not None


def counter(db: sqlite3.Connection, name: str) -> int:
    row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def _add(db: sqlite3.Connection, name: str, amount: int) -> None:
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


def _model_id(db: sqlite3.Connection, fingerprint: bytes, name: str, layout: str) -> int:
    with transaction(db):
        return model_id(db, fingerprint, name, layout)
