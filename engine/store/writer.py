"""Write-behind: one low-priority thread appends records, syncs when it is idle, and only then publishes index rows."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from engine.kv.disk import Handed
from engine.kv.keys import Key
from engine.kv.notices import Notice
from engine.store.index import Index
from engine.store.jobs import Job, JobQueue, Unpublished
from engine.store.packing import Packer
from engine.store.record import BLOCK, RecordHeader
from engine.store.recovery import forget_record, head_record
from engine.store.refusals import Refusals
from engine.store.rows import NewRecord
from engine.store.segment import Buffer, SegmentWriter
from engine.store.states import state_header

T = TypeVar("T")
SEGMENT_BYTES = 256 << 20
_IDLE_SECONDS = 0.25  # quiet time before a sync
_LONGEST_SECONDS = 2.0  # what a crash may lose, besides what is in the middle of being written
_UNSYNCED_BYTES = 64 << 20
_NICENESS = 10


class Writer:
    """Owns the process's segment. Every job is settled in the end: durable, or refused with `done(False)`.

    Attributes: bytes_written: appended so far; refusals: of what was to be saved last.
    `make_room(bytes, page before it)` is asked before each record and raises where there is none, `failed` is
    told about errors; both on the thread.
    """

    def __init__(
        self, folder: Path, index: Index, packer: Packer, make_room: Callable[[int, Key | None], None],
        failed: Callable[[Exception], None],
    ) -> None:  # fmt: skip
        self._folder = folder
        self._index = index
        self._packer = packer
        self._make_room = make_room
        self._failed = failed
        self._queue = JobQueue()
        self._segment: SegmentWriter | None = None
        self._open = Unpublished()
        self._notices: deque[Notice] = deque(maxlen=50)
        self.refusals = Refusals(self._notices.append)
        self.bytes_written = 0
        self._thread = threading.Thread(target=self._run, name="kv-writer", daemon=True)
        self._thread.start()

    # --- any thread ---

    def submit(self, job: Job) -> None:
        self._queue.put(job)

    def pending_bytes(self) -> int:
        return self._queue.pending_bytes

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until all jobs submitted so far are settled."""
        return self._queue.flush(self._thread.is_alive, timeout)

    def hand_over(self) -> Handed:
        """See engine.kv.disk.DiskTier."""
        handed = Handed()
        self.submit(Job(handed=handed.tell))
        return handed

    def close(self, timeout: float | None = None) -> None:
        """Settles everything and ends the thread."""
        self._queue.close()
        self._thread.join(timeout)

    @property
    def is_removed(self) -> bool:
        """The segment's file is not there any more."""
        segment = self._segment
        return segment is not None and not segment.path.exists()

    def notify(self, *notices: Notice) -> None:
        self._notices.extend(notices)

    def notices(self) -> list[Notice]:
        return [self._notices.popleft() for _ in range(len(self._notices))]

    # --- the thread ---

    def _run(self) -> None:
        if sys.platform == "linux":  # elsewhere it would slow the whole process down
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            job = self._queue.next(_IDLE_SECONDS if self._open.jobs else None)
            if job is not None:
                self._guarded(job)
            if job is None or self._open.bytes > _UNSYNCED_BYTES or self._age() > _LONGEST_SECONDS:
                self._publish()
            if job is None and self._queue.is_over:
                break
        self._retire()
        self.refusals.note_rest(self._index)

    def _age(self) -> float:
        return time.monotonic() - self._open.since if self._open.jobs else 0.0

    def let_go(self) -> None:
        """On the thread, when files were removed under it: what was appended and not published is queued again."""
        batch, self._open = self._open, Unpublished()
        self._queue.put_back(batch.jobs)
        self._retire()

    def publish_to(self, index: Index) -> None:
        self._index = index

    def _met_removal(self) -> None:
        """Whoever hears of failures lets go of a segment whose file is gone."""
        if self.is_removed:
            self._failed(FileNotFoundError(errno.ENOENT, "a segment was removed"))

    def _guarded(self, job: Job) -> None:
        if self.is_removed:
            self._queue.put_back([job])  # what was appended before goes in front of it
            self._met_removal()
            return
        try:
            self._do(job)
        except Exception as error:  # whatever it is, it must not end the thread that everybody waits for
            self._refuse([job], error)

    def _do(self, job: Job) -> None:
        if job.task or job.forget:
            self._publish()
            self._forget(job) if job.forget else job.task and job.task()
            self._settle([job], True)
        elif job.handed:
            self._hand_over(job.handed)
            self._settle([job], True)
        elif self._queue.supersedes(job):
            self._settle([job], False)
        elif self.refusals.active:
            self._leave([job])
        else:
            self._append(job)

    def _hand_over(self, handed: Callable[[bool], None]) -> None:
        with contextlib.suppress(OSError):  # what was appended is refused, its time has come
            if self._segment:
                self._written(self._segment.write_out)
        handed(not self.refusals.active)

    def _forget(self, job: Job) -> None:
        """The record matters only if the index is lost, so a full disk does not stand in the way."""
        with contextlib.suppress(OSError):
            segment = self._ready_segment(BLOCK)
            self._append_record(segment, forget_record(job.forget, self._packer.fingerprint), [])
            segment.sync()
        self._index.forget(job.forget, job.delete)

    def _append(self, job: Job) -> None:
        if not job.follow:
            self._append_records(job)
        self._open.since = self._open.since if self._open.jobs else time.monotonic()
        self._open.jobs.append(job)

    def _append_records(self, job: Job) -> None:
        after = job.request.parent if job.request and job.request.start else None
        segment = self._ready_segment(job.bytes, after)
        if job.request:
            for header, pieces in self._packer.pack(job.request):
                offset = self._append_record(segment, header, pieces)
                self._open.records.append(NewRecord(header, segment.name, offset))
        elif job.state:
            header = state_header(job.state, self._packer.fingerprint, self._packer.layout.layout_id)
            offset = self._append_record(segment, header, [job.state.state])
            self._open.records.append(NewRecord(header, segment.name, offset))
        elif job.head:
            named = self._packer.fingerprint, self._index.model_words
            self._append_record(segment, head_record(job.head, *named), [])
            self._open.heads[job.head.conversation] = job.head

    def _ready_segment(self, size: int, after: Key | None = None) -> SegmentWriter:
        self._make_room(size, after)
        if self._segment and self._segment.end + size > SEGMENT_BYTES and not self._segment.is_empty:
            self.rotate()
        if self._segment is None:
            self._segment = SegmentWriter(self._folder)
        return self._segment

    @property
    def held_bytes(self) -> int:
        """On the thread: of records that are not in the segment's file yet."""
        return self._segment.held_bytes if self._segment else 0

    def rotate(self) -> None:
        """On the thread: publishes what was appended and begins a new segment with the next record."""
        self._publish()
        self._retire()

    def _append_record(self, segment: SegmentWriter, header: RecordHeader, pieces: Sequence[Buffer]) -> int:
        offset = self._written(lambda: segment.append(header, pieces))
        self.bytes_written += header.record_bytes
        self._open.bytes += header.record_bytes
        return offset

    def _written(self, write: Callable[[], T]) -> T:
        try:
            return write()
        except OSError as error:  # what was not synced yet may be missing in the middle
            batch, self._open = self._open, Unpublished()
            self._refuse(batch.jobs, error)
            self._retire()
            raise

    def _publish(self) -> None:
        """Makes everything appended durable, then known."""
        self._met_removal()
        batch, self._open = self._open, Unpublished()
        if not batch.jobs:
            return
        try:
            ends = {}
            if self._segment:
                self._segment.sync()
                ends = {self._segment.name: self._segment.end}
            self._index.publish(batch.records, ends, batch.heads.values(), batch.bytes)
        except Exception as error:  # as in _guarded: somebody waits for each of these jobs
            if self.is_removed:
                self._append_again(batch)
                return
            self._refuse(batch.jobs, error)
            if not isinstance(error, sqlite3.Error):
                self._retire()
        else:
            if self.is_removed:
                self._append_again(batch)
                return
            self.refusals.why = ""
            self.refusals.saved(batch.heads)
            self.refusals.note_rest(self._index)
            self._settle(batch.jobs, True)

    def _append_again(self, batch: Unpublished) -> None:
        """What was being published when the folder was removed."""
        self._open = batch
        self._met_removal()

    def _settle(self, jobs: list[Job], durable: bool) -> None:
        for job in jobs:
            try:
                job.done(durable)
                if job.follow and durable:
                    job.follow()
            except Exception as error:  # the others are told all the same
                self._failed(error)
        self._queue.settled(jobs)

    def _refuse(self, jobs: list[Job], error: Exception) -> None:
        self._failed(error)
        self.refusals.begin(error)
        self._leave(jobs)

    def _leave(self, jobs: list[Job]) -> None:
        self.refusals.note(self._index, [job.head.conversation for job in jobs if job.head])
        self._settle(jobs, False)

    def _retire(self) -> None:
        """Lets go of the segment; one without records is removed."""
        segment, self._segment = self._segment, None
        if segment:
            with contextlib.suppress(OSError):  # its folder may be gone
                segment.close()
                if segment.is_empty:
                    segment.path.unlink(missing_ok=True)
