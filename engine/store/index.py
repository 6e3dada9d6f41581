"""The index in memory and in SQLite: which record holds which key of a model, and where conversations end.

In memory are all keys with their parents; the row of a key is read once, when it is first asked for. `refresh` takes
over what others committed. Writing is the I/O thread's, on a connection of its own, so that a checkpoint never makes a
look-up wait.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from engine.kv.disk import DiskRecord, Gone, Head
from engine.kv.keys import Key
from engine.kv.layout import kv_types_in
from engine.store.following import Following, GroupCount
from engine.store.pins import forget_pins, put_heads, set_pins
from engine.store.recovery import model_words
from engine.store.rows import (
    HEAD_COLUMNS,
    NewRecord,
    add,
    drop_groups,
    forget_head,
    insert_records,
    model_id,
    read_head,
    remove_records,
    set_costs,
    set_scanned,
    snapshot,
    transaction,
)  # fmt: skip
from engine.store.schema import connect

T = TypeVar("T")


class Index:
    """Rows of one model (`fingerprint`), shared with other processes. sqlite3.Error from any method: it is damaged."""

    def __init__(self, path: Path, fingerprint: bytes, groups: GroupCount, name: str = "", layout: str = "") -> None:
        self._groups, self._folder = groups, path.parent
        self._lock = threading.Lock()  # of the reading connection
        self._write_lock = threading.Lock()
        self._reader = connect(path)
        self._writer = connect(path)
        self._parents: dict[bytes, bytes] = {}  # of all keys; only bytes, so that 100,000 load in a tenth of a second
        self._records: dict[bytes, DiskRecord] = {}  # those that were asked for
        self._heads: dict[str, Head] = {}
        self._hidden: dict[bytes, Gone] = {}  # until they come back
        self._taken_out: list[Key] = []
        self._version, self._last, self._removed = -1, 0, 0
        self._name, self._types, self.model_words = name, kv_types_in(layout), model_words(name, layout)
        with transaction(self._writer) as db:
            self.model = model_id(db, fingerprint, name, layout)
        self._following = Following(self._reader, self.model, groups)
        self.refresh()

    def close(self) -> None:
        with self._lock, self._write_lock:
            self._reader.close()
            self._writer.close()

    # --- look-ups ---

    def find(self, key: Key) -> DiskRecord | None:
        """The record if all layer groups that it must have are there."""
        record = self._records.get(key)
        if record is None and key in self._parents:
            with self._lock:  # until it is kept: older rows must not replace what a refresh takes over meanwhile
                self._following.read(key, self._parents, self._records)
                record = self._records.get(key)
                if record is None and key in self._parents:  # it may have been hidden while this waited
                    record = self._following.one(key)
                    if record is not None:
                        self._records[key] = record
        return record

    def parent(self, key: Key) -> Key | None:
        """The key before it, None if the key is not on disk."""
        found = self._parents.get(key)
        return Key(found) if found is not None else None

    def children(self, parent: Key) -> list[DiskRecord]:
        with self._lock:
            query = "SELECT DISTINCT key FROM records WHERE model = ? AND parent = ? AND kind < 2"
            keys = [Key(row[0]) for row in self._reader.execute(query, (self.model, parent))]
        return [record for key in keys if (record := self.find(key)) is not None]

    def memory(self) -> int:
        """Bytes that the maps take: their own, and two keys of 16 bytes per entry."""
        maps = sys.getsizeof(self._parents) + sys.getsizeof(self._records) + sys.getsizeof(self._heads)
        return maps + len(self._parents) * 2 * sys.getsizeof(bytes(16))

    def count(self) -> int:
        return len(self._parents)

    def heads(self) -> dict[str, Head]:
        return dict(self._heads)

    def gone(self, key: Key) -> Gone | None:
        """What became of a record that was here."""
        if (hidden := self._hidden.get(key)) and key not in self._parents:
            return hidden
        with self._lock:
            query = "SELECT reason, at FROM gone WHERE model = ? AND key = ?"
            row = self._reader.execute(query, (self.model, key)).fetchone()
        return Gone(*row) if row else None

    def look(self, ask: Callable[[sqlite3.Connection, int], T]) -> T:
        """`ask(reading connection, model)`"""
        with self._lock:
            return ask(self._reader, self.model)

    def kept_elsewhere(self, conversation: str, tokens: int) -> str:
        """Why more than `tokens` tokens of it were kept last, but not for this model as it runs; or ""."""
        query = (
            "SELECT model, name, layout, heads.tokens FROM heads JOIN models ON models.id = heads.model "
            "WHERE conversation = ? AND layout != '' ORDER BY saved DESC LIMIT 1"
        )
        with self._lock:
            row = self._reader.execute(query, (conversation,)).fetchone()
        if row is None or row[0] == self.model or row[3] <= tokens:
            return ""
        kind = kv_types_in(row[2])
        return f"kept as KV type {kind}" if row[1] == self._name and kind != self._types else "kept for another model"

    def refresh(self) -> bool:
        """Takes over what was committed since; True if there was something."""
        with self._lock:
            version = self._reader.execute("PRAGMA data_version").fetchone()[0]
            if version == self._version:
                return False
            with snapshot(self._reader):
                self._forget_removed()
                self._load()
            self._version = version
            return True

    def _forget_removed(self) -> None:
        """Takes out what the log of removals names. If that does not reach back far enough everything is read anew, and
        what has not had the same row all the time counts as taken out."""
        known = self._removed
        query = "SELECT coalesce(max(seq), 0), coalesce(min(seq), 1) FROM removed"
        self._removed, first = self._reader.execute(query).fetchone()
        if first > known + 1:
            rows = "SELECT key FROM records WHERE model = ? GROUP BY key HAVING max(seq) <= ?"
            left = {key for (key,) in self._reader.execute(rows, (self.model, self._last))}
            self._taken_out += (Key(key) for key in self._parents if key not in left)
            self._parents, self._records, self._last = {}, {}, 0
            return
        query = "SELECT key FROM removed WHERE model = ? AND seq > ?"
        for (key,) in self._reader.execute(query, (self.model, known)):
            self._drop(key)
            self._taken_out.append(Key(key))

    def _load(self) -> None:
        query = "SELECT key, parent FROM records WHERE model = ?" + (" AND seq > ?" if self._last else "")
        values = (self.model, self._last) if self._last else (self.model,)
        fresh: dict[bytes, bytes] = dict(self._reader.execute(query, values))
        for key in fresh if self._records else ():
            self._records.pop(key, None)  # it may lie elsewhere now
        self._parents.update(fresh)
        self._last = self._reader.execute("SELECT coalesce(max(seq), 0) FROM records").fetchone()[0]
        heads = self._reader.execute(f"SELECT {HEAD_COLUMNS} FROM heads WHERE model = ?", (self.model,))
        self._heads = {row[0]: read_head(row) for row in heads}

    def taken_out(self) -> list[Key]:
        """See engine.kv.disk.DiskTier."""
        with self._lock:
            found, self._taken_out = self._taken_out, []
        return found

    def _drop(self, key: bytes) -> None:
        self._parents.pop(key, None)
        self._records.pop(key, None)

    # --- writing: the I/O thread ---

    def publish(self, records: Sequence[NewRecord], ends: dict[str, int], heads: Iterable[Head], written: int) -> None:
        """One transaction: rows of durable records, how far their segments are known, and heads that refer to them."""
        with self._write_lock, transaction(self._writer) as db:
            for segment, end in ends.items():
                set_scanned(db, segment, end)
            insert_records(db, self.model, records)
            put_heads(db, self._folder, self.model, heads)
            add(db, "written", written)

    def forget(self, conversation: str, delete: bool) -> None:
        """Removes a head; `delete` also removes the records that only it used."""
        with self._write_lock, transaction(self._writer) as db:
            forget_head(db, self.model, conversation, delete)
            forget_pins(db, self._folder, conversation, [self.model])

    def hide(self, key: Key, reason: str = "damaged") -> None:
        """The record counts as absent at once; `remove` makes that last."""
        with self._lock:  # a look-up on another thread would put it back
            self._drop(key)
            self._hidden[key] = Gone(reason, time.time())

    def maintain(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Runs maintenance on the writing connection."""
        with self._write_lock:
            work(self._writer)

    def remove(self, keys: Iterable[Key], reason: str) -> None:
        """Takes records out, in every layer group; `reason` is kept for `gone` unless it is empty."""
        with self._write_lock, transaction(self._writer) as db:
            remove_records(db, self.model, keys, reason)

    def drop_windows(self, keys: Sequence[Key], since: Sequence[Key]) -> None:
        """Takes the sliding-window layers of pages out; `since`: the last window. See rows.drop_groups."""
        with self._write_lock, transaction(self._writer) as db:
            dropped = drop_groups(db, self.model, keys, since, self._groups.needed)
        for key in dropped:
            self._records.pop(key, None)

    def note_check(self, equal: bool) -> None:
        """A page was computed again and compared."""
        with self._write_lock, transaction(self._writer) as db:
            add(db, "checked", 1)
            add(db, "wrong", not equal)

    def note_costs(self, seconds_per_token: float, depth_scale: float) -> None:
        """What computing with this model costs here: eviction weighs its pages by that."""
        with self._write_lock, transaction(self._writer) as db:
            set_costs(db, self.model, seconds_per_token, depth_scale)

    def pin(self, conversation: str, pinned: bool) -> None:
        with self._write_lock, transaction(self._writer) as db:
            set_pins(db, self._folder, conversation, pinned, self.model)

    def touch(self, key: Key) -> None:
        """Notes that the record was used now; eviction lets that count for the pages before it too."""
        with self._write_lock, transaction(self._writer) as db:
            db.execute("UPDATE records SET used = ? WHERE model = ? AND key = ?", (time.time(), self.model, key))
