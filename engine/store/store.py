"""KvStore: the disk tier of one model's KV state. Several processes may use one folder, several models too.

Look-ups come from memory; writing and reading happen on I/O threads; damage and a full disk are notices, never errors.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskRecord, Gone, Handed, Head, ReadRequest, StateRecord, StateRequest, WriteRequest
from engine.kv.keys import Ids, Key, Roles
from engine.kv.layout import PageLayout
from engine.kv.log import KvLog, LogLevel
from engine.kv.value import Costs
from engine.store.budget import DiskStat, segment_bytes
from engine.store.claims import ClaimFile
from engine.store.following import GroupCount
from engine.store.index import Index
from engine.store.jobs import Job
from engine.store.loss import loss_told
from engine.store.mapping import can_map, map_records
from engine.store.opening import REMOVED, SEGMENTS_NAME, Place
from engine.store.packing import Packer
from engine.store.pins import Pin, bring_back_pins, pins_in
from engine.store.reader import ReadBatch, Reader
from engine.store.record import BLOCK, SHIFTED, intact_record
from engine.store.recovery import is_damage, mark_damaged
from engine.store.refusals import OverBudget, refusal
from engine.store.room import Room
from engine.store.schema import cannot_open
from engine.store.segments import Segments
from engine.store.states import read_state, states_of
from engine.store.ways import FILE, Ways
from engine.store.writer import Writer

T = TypeVar("T")
_AGAIN_SECONDS = 5.0


class KvStore:
    """The implementation of engine.kv.disk.DiskTier; its methods are described there.

    Attributes: folder; recovered: what opening found.
    """

    intact = staticmethod(intact_record)

    def __init__(
        self, folder: Path, layout: PageLayout, fingerprint: bytes, budget: int = 20 << 30, name: str = "",
        log: KvLog | None = None,
    ) -> None:  # fmt: skip
        """Opens or makes the store. StoreError: the folder cannot be used."""
        self.folder = Path(folder)
        self._budget, self._log = budget, log or KvLog(None)
        known = fingerprint, GroupCount.of(layout), name, layout.describe()
        self._place = Place(self.folder, lambda path: Index(path, *known), self._log)
        try:
            self.recovered, self._index = self._place.open()
        except (OSError, sqlite3.Error) as error:
            advice = "Check the folder's permissions and the free space; conversations go on without being saved."
            raise cannot_open("Saved conversations cannot be used.", self.folder, error, advice) from error
        self._packer, self._opening = Packer(layout, fingerprint), threading.Lock()
        self._segments = Segments(self.folder / SEGMENTS_NAME)
        self._room = Room(self.folder, self.folder / SEGMENTS_NAME, budget, self._log)
        self._claims = ClaimFile(self.folder)
        self.claim, self.unclaim = self._claims.claim, self._claims.release
        self._writer = Writer(self.folder / SEGMENTS_NAME, self._index, self._packer, self._make_room, self._met)
        self.notices, self.pending_bytes = self._writer.notices, self._writer.pending_bytes
        self._ways = Ways.load(self.folder / FILE)
        self._reader = Reader(self._segments, self._packer, self._find_again, self._quarantine, self._saw)
        self._writer.notify(*self.recovered.notices())
        try:
            self._safely(lambda: self._room.check(self._index), None)
        except OverBudget as error:
            self._writer.refusals.begin(error)

    def close(self, timeout: float | None = None) -> None:
        """Writes what is queued and ends the threads."""
        self._writer.close(timeout)
        self._reader.close()
        self._ways.save()
        self._segments.close()
        self._claims.close()
        self._index.close()
        self._place.close()

    @property
    def bytes_written(self) -> int:
        """Appended by this process."""
        return self._writer.bytes_written

    def refused(self) -> str:
        """Why what was to be saved last was not; "" if it was."""
        return self._writer.refusals.why

    def stat(self) -> DiskStat:
        """Sizes, for the status bar: quick."""
        used = segment_bytes(self.folder / SEGMENTS_NAME)
        return DiskStat(used, self._budget, self._index.count(), len(self._index.heads()))

    # --- look-ups ---

    def refresh(self) -> bool:
        if lost := self._is_lost() or self._opening.locked():  # in this order: it is held before the writer lets go
            self._writer.submit(Job(task=self._open_again))
            self._writer.flush(_AGAIN_SECONDS)
        return self._safely(self._index.refresh, False) or lost

    def taken_out(self) -> list[Key]:
        return self._index.taken_out()

    def find(self, key: Key) -> DiskRecord | None:
        try:  # as in _safely, which takes four times as long: a long prefix asks a thousand times
            return self._index.find(key)
        except sqlite3.Error as error:
            self._met(error)
            return None

    def parent(self, key: Key) -> Key | None:
        return self._index.parent(key)

    def children(self, parent: Key) -> list[DiskRecord]:
        return self._safely(lambda: self._index.children(parent), [])

    def tokens_of(self, record: DiskRecord) -> tuple[Ids, Roles] | None:
        header = self._segments.header(record.place)
        if header is None or header.key != record.key:  # moved by another process, or damaged
            moved = self._find_again(record)
            header = self._segments.header(moved.place) if moved else None
        if header is None or header.key != record.key:
            self._quarantine([record], "damaged")
            return None
        return header.ids, header.roles

    def gone(self, key: Key) -> Gone | None:
        return self._safely(lambda: self._index.gone(key), None)

    def moved(self, key: Key) -> bool:
        record = self.find(key)
        header = self._segments.header(record.place) if record else None
        return header is not None and header.key == key and bool(header.flags & SHIFTED)

    def kept_elsewhere(self, conversation: str, tokens: int) -> str:
        return self._safely(lambda: self._index.kept_elsewhere(conversation, tokens), "")

    def refusal(self, conversation: str) -> Gone | None:
        return self._safely(lambda: self._index.look(lambda db, model: refusal(db, model, conversation)), None)

    def heads(self) -> dict[str, Head]:
        return self._index.heads()

    # --- writing ---

    def write(self, request: WriteRequest, done: Callable[[bool], None]) -> int:
        if self._writer.refusals.active:
            done(False)
            return 0
        size = self._packer.record_bytes(request)
        self._writer.submit(Job(request=request, done=done, bytes=size))
        return size

    def drop_windows(self, keys: Sequence[Key], since: Sequence[Key]) -> None:
        self._writer.submit(Job(follow=lambda: self._safely(lambda: self._index.drop_windows(keys, since), None)))

    def write_state(self, request: StateRequest) -> int:
        size = 0 if self._writer.refusals.active else len(request.state) + BLOCK
        self._writer.submit(Job(state=request, bytes=size))
        return size

    def states(self, parent: Key) -> list[StateRecord]:
        return self._safely(lambda: self._index.look(lambda db, model: states_of(db, model, parent)), [])

    def read_state(self, record: StateRecord, ids: Ids, roles: Roles, numerics: str) -> npt.NDArray[np.uint8] | None:
        state = read_state(self._segments, self._packer.fingerprint, numerics, record, ids, roles)
        if state is None:
            self.discard(record.key)
        return state

    def save_head(self, head: Head) -> None:
        self._writer.submit(Job(head=head, bytes=BLOCK))

    def forget(self, conversation: str, delete: bool) -> None:
        self._writer.submit(Job(forget=conversation, delete=delete, bytes=BLOCK))

    def touch(self, key: Key) -> None:
        self._writer.submit(Job(task=lambda: self._index.touch(key)))

    def discard(self, key: Key) -> None:
        self._index.hide(key)
        self._writer.submit(Job(task=lambda: self._index.remove([key], "damaged")))

    def note_check(self, equal: bool) -> None:
        self._writer.submit(Job(task=lambda: self._index.note_check(equal)))

    def note_costs(self, costs: Costs) -> None:
        self._writer.submit(Job(task=lambda: self._index.note_costs(costs.seconds_per_token, costs.depth_scale)))

    def pin(self, conversation: str, pinned: bool) -> None:
        self._writer.submit(Job(task=lambda: self._index.pin(conversation, pinned)))

    def index_bytes(self) -> int:
        return self._index.memory()

    def flush(self, timeout: float | None = None) -> bool:
        return self._writer.flush(timeout)

    def hand_over(self) -> Handed:
        return self._writer.hand_over()

    def retry(self) -> None:
        """Tries to write again at once after the disk was full; otherwise that happens after a while."""
        self._writer.refusals.end()

    # --- reading ---

    def map(self, records: Sequence[DiskRecord], choose: bool = True) -> list[npt.NDArray[np.uint8] | None]:
        if not can_map() or (choose and not self._ways.choose_map(sum(record.bytes for record in records))):
            return [None] * len(records)
        return map_records(self._segments.duplicate, records)

    def _saw(self, batch: ReadBatch) -> None:
        if not batch.cancelled:
            self._ways.saw(batch.mapped, batch.bytes_read, batch.seconds)

    def read(self, requests: Sequence[ReadRequest]) -> ReadBatch:
        batch = ReadBatch(requests, self._packer)
        self._reader.submit(batch)
        return batch

    def _find_again(self, record: DiskRecord) -> DiskRecord | None:
        self.refresh()
        return self.find(record.key)

    def _quarantine(self, records: list[DiskRecord], reason: str) -> None:
        """On a reading thread: the records count as absent from now on; their bytes stay until they are collected."""
        told, notice = loss_told(records, reason)
        for key in (keys := [record.key for record in records]):
            self._index.hide(key, reason)
        self._writer.submit(Job(task=lambda: self._index.remove(keys, reason)))
        self._writer.submit(Job(task=lambda: self._note("warn", "quarantine", told)))
        self._writer.notify(notice)

    def _safely(self, ask: Callable[[], T], otherwise: T) -> T:
        """A look-up in an index that was damaged under us counts as a miss; the next start makes it anew."""
        try:
            return ask()
        except sqlite3.Error as error:
            self._met(error)
            return otherwise

    def _met(self, error: Exception) -> None:
        if isinstance(error, sqlite3.Error) and is_damage(error):
            mark_damaged(self.folder)
        elif isinstance(error, FileNotFoundError):
            with contextlib.suppress(OSError, sqlite3.Error):  # it is tried again with the next record
                self._open_again()

    def _is_lost(self) -> bool:
        return self._place.is_lost() or self._writer.is_removed

    def _open_again(self) -> None:
        """On the writing thread: what was removed under this process is made again, and the index read anew. Rows whose
        segments are gone go, so that the next save writes again what is still in memory."""
        if not self._is_lost():
            return
        with self._opening:
            removed = self._writer.is_removed or not self._place.has_segments()
            self._writer.let_go()
            pins = set[Pin]()
            with contextlib.suppress(sqlite3.Error):  # the index's file is held open, removed or not
                pins = self._index.look(lambda db, _: pins_in(db))
            recovered, index = self._place.open_again()
            self._claims.open_again()
            before, self._index = self._index, index
            self._writer.publish_to(index)  # first of all: the place counts as found again by now
            before.close()
        told = [REMOVED] * removed + recovered.notices(not removed) + bring_back_pins(index.maintain, self.folder, pins)
        self._writer.notify(*told)
        reason = "the folder was removed" if removed else "its file was replaced"
        self._note("warn", "reopen", {"records": recovered.records, "reason": reason})

    def _make_room(self, size: int, after: Key | None) -> None:
        """On the writing thread; see Room."""
        self._open_again()
        self._room.make(size, after, self._index, self._writer)

    def _note(self, level: LogLevel, operation: str, fields: dict[str, Any]) -> None:
        """On the writing thread."""
        self._log.add(level, operation, **fields)
        self._log.flush()
