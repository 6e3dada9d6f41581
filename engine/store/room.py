"""Room for what is to be written: what has to go for it, and why there may be none."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from engine.kv.keys import Key
from engine.kv.log import KvLog
from engine.store.budget import collect, segment_bytes
from engine.store.eviction import pinned_bytes
from engine.store.index import Index
from engine.store.locks import maintenance
from engine.store.record import BLOCK
from engine.store.refusals import DiskFull, OverBudget

if TYPE_CHECKING:
    from engine.store.writer import Writer

_EVICT_TO = 0.9  # of the budget, so that not every page evicts
_LEFT_FREE, _LEFT_SHARE = 64_000_000, 0.02  # bytes, and of the disk; the smaller one counts


class Room:
    """The segments below `folder`, at most `budget` bytes."""

    def __init__(self, folder: Path, segments: Path, budget: int, log: KvLog) -> None:
        self._folder, self._segments = folder, segments
        self._budget, self._log = budget, log

    def check(self, index: Index) -> None:
        """OverBudget: what is pinned leaves room for nothing, whatever else goes. Quick where there is room."""
        if segment_bytes(self._segments) > self._budget:
            pinned = index.look(lambda db, _: pinned_bytes(db))
            if pinned + 2 * BLOCK > self._budget:
                raise OverBudget(self._budget, pinned)

    def make(self, size: int, after: Key | None, index: Index, writer: Writer) -> None:
        """On the writing thread: evicts when the budget is reached. OverBudget: that did not help. DiskFull.

        `after`: the page that the record follows. Without it the record would be of no use, so it stays, and where it
        is gone nothing is evicted for the record.
        """
        self._leave_free(writer.held_bytes + size)
        if segment_bytes(self._segments) + writer.held_bytes + size <= self._budget:
            return
        with maintenance(self._folder) as free:
            if free:
                writer.rotate()
                target, name = int(self._budget * _EVICT_TO) - size, (index.model, after) if after else None
                index.maintain(lambda db: self._collect(db, target, name))
        if segment_bytes(self._segments) + size > self._budget:
            raise OverBudget(self._budget, index.look(lambda db, _: pinned_bytes(db)))

    def _leave_free(self, size: int) -> None:
        try:
            disk = shutil.disk_usage(self._folder)
        except FileNotFoundError:  # removed at this moment: who writes makes it again
            return
        left = min(_LEFT_FREE, int(disk.total * _LEFT_SHARE))
        if disk.free - size < left:
            raise DiskFull(left)

    def _collect(self, db: sqlite3.Connection, budget: int, name: tuple[int, Key] | None) -> None:
        if name is None or db.execute("SELECT 1 FROM records WHERE model = ? AND key = ?", name).fetchone():
            done = collect(db, self._segments, budget, name)
            freed, reason = max(0, done.bytes_before - done.bytes_after), f"disk budget of {self._budget / 1e6:,.1f} MB"
            self._log.add("info", "evict", bytes=freed, evicted=done.evicted, reason=reason)
            self._log.flush()
