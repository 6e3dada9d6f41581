"""Restore reads: in file order, in large requests, each checked layer by layer right after it was read."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskRecord, ReadRequest
from engine.kv.layout import copy_rows
from engine.store.mapping import in_file_cache, populate
from engine.store.packing import Packer, hidden_of
from engine.store.parts import COLD_BYTES, Part, parts_of, runs_of
from engine.store.record import RecordHeader, decode
from engine.store.segments import Segments
from kernels.checksum import cpu as checksums

Bytes = npt.NDArray[np.uint8]
_THREADS = 8  # requests in flight: four read a bare disk as fast where nothing else runs, but not beside other work
Work = Callable[["ReadBatch", list[Part]], None]


class ReadBatch:
    """A batch of reads in progress: see engine.kv.disk.ReadTicket."""

    def __init__(self, requests: Sequence[ReadRequest], packer: Packer) -> None:
        self.requests = requests
        self.bytes_read = 0
        self.cancelled = False
        self._outcomes = [""] * len(requests)
        self._hidden: dict[int, npt.NDArray[np.float32]] = {}
        self._usable = threading.Event()
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._started = time.perf_counter()
        self.seconds = self.ended = 0.0  # until everything was read and checked
        parts = sorted(
            parts_of(requests, packer, lambda number: self.fail(number, "damaged")),
            key=lambda part: (part.at.segment, part.at.offset),
        )
        runs = _runs(parts)
        self._left, self._unready = len(runs), {id(run) for run in runs if not _in_memory(run)}
        self.cached = self.mapped and all(map(_at_hand, runs))
        self._waiting = deque(sorted(runs, key=lambda run: run[0].mapped is not None if run else False))
        self._work: Work | None = None
        self.ready()

    def done(self) -> bool:
        return self._finished.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        if self.cached and self._work is not None:
            self.help(self._work)
        return self._finished.wait(timeout)

    def begin(self, work: Work) -> None:
        """Who waits for it may do some of the `work`: where all is in memory that is quicker than waking others."""
        self._work = work

    def help(self, work: Work) -> None:
        """Works on runs that nobody has begun, until there are none."""
        while self._waiting:
            try:
                run = self._waiting.popleft()
            except IndexError:  # somebody else took the last
                return
            work(self, run)

    def usable(self) -> bool:
        return self._usable.is_set()

    def wait_usable(self, timeout: float | None = None) -> bool:
        return self._usable.wait(timeout)

    def cancel(self) -> None:
        self.cancelled = True

    def outcome(self, index: int) -> str:
        return self._outcomes[index]

    def hidden(self, index: int) -> npt.NDArray[np.float32] | None:
        return self._hidden.get(index)

    def fail(self, index: int, reason: str) -> None:
        self._outcomes[index] = self._outcomes[index] or reason

    def keep_hidden(self, index: int, hidden: npt.NDArray[np.float32] | None) -> None:
        if hidden is not None:
            self._hidden[index] = hidden

    def count(self, size: int) -> None:
        with self._lock:
            self.bytes_read += size

    def ready(self, run: list[Part] | None = None) -> None:
        """A run can be computed with: it is in memory, and checked unless it is mapped."""
        with self._lock:
            self._unready.discard(id(run))
            if self.mapped and not self._unready:
                self._usable.set()

    def settle(self) -> bool:
        """A run is through; True for the last."""
        with self._lock:
            self._left -= 1
            return not self._left

    @property
    def mapped(self) -> bool:
        return any(request.mapped is not None for request in self.requests)

    def finish(self) -> None:
        self.ended = time.perf_counter()
        self.seconds = self.ended - self._started
        self._usable.set()
        self._finished.set()


class Reader:
    """Threads that read and check runs of records.

    `damaged(records, reason)` is told about those that failed, `ended(batch)` about every batch; on a thread.
    """

    def __init__(
        self, segments: Segments, packer: Packer, find: Callable[[DiskRecord], DiskRecord | None],
        damaged: Callable[[list[DiskRecord], str], None],
        ended: Callable[[ReadBatch], None] = lambda batch: None,
    ) -> None:  # fmt: skip
        self._segments = segments
        self._packer = packer
        self._find = find
        self._damaged = damaged
        self._ended = ended
        self._batches: queue.SimpleQueue[ReadBatch | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._asked = 0  # places at batches that are queued or taken

    def submit(self, batch: ReadBatch) -> None:
        batch.begin(self._through)
        helpers = (os.cpu_count() or 2) - 1 if batch.cached else _THREADS  # who waits works too
        wanted = min(_THREADS, max(1, helpers))
        self._hire(wanted)
        for _ in range(wanted):
            self._batches.put(batch)

    def _hire(self, wanted: int) -> None:
        """Threads start when there is work for them: what the file cache holds needs one, a bare disk all."""
        with self._lock:
            self._asked += wanted
            for number in range(len(self._threads), min(_THREADS, self._asked)):
                thread = threading.Thread(target=self._loop, name=f"kv-reader-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def close(self) -> None:
        """Ends the threads once what was submitted so far is read."""
        for _ in self._threads:
            self._batches.put(None)
        for thread in self._threads:
            thread.join()

    def _loop(self) -> None:
        while (batch := self._batches.get()) is not None:
            batch.help(self._through)
            with self._lock:
                self._asked -= 1
            del batch  # and with it the memory it was read into

    def _through(self, batch: ReadBatch, run: list[Part]) -> None:
        try:
            self._read(batch, run)
            self._check(batch, run)
        except Exception:  # bytes from disk may fail in unforeseen ways; the batch has to come to an end
            _fail(batch, run, "damaged")
        batch.ready(run)
        if batch.settle():
            self._report(batch)
            batch.finish()
            self._ended(batch)

    def _read(self, batch: ReadBatch, run: list[Part]) -> None:
        """One request to the system for records that follow each other in a segment."""
        if batch.cancelled or not run:
            _fail(batch, run, "cancelled")
            return
        if run[0].mapped is not None:
            self._populate(batch, run)
            return
        first, pieces = run[0], [piece for part in run for piece in part.pieces()]
        try:
            batch.count(self._segments.pread(first.at.segment, pieces, first.at.offset))
        except OSError as error:
            for part in run:
                self._read_elsewhere(batch, part, error)

    def _populate(self, batch: ReadBatch, run: list[Part]) -> None:
        for part in run:
            assert part.mapped is not None
            try:
                populate(part.mapped)
                batch.count(len(part.mapped))
            except OSError:
                batch.fail(part.request, "damaged")
        batch.ready(run)

    def _read_elsewhere(self, batch: ReadBatch, part: Part, error: OSError) -> None:
        """The segment is gone: another process may have moved the record meanwhile."""
        record = self._find(batch.requests[part.request].record)
        at = record.parts[part.index] if record else part.at
        if at is None or at == part.at or at.payload != part.at.payload:
            batch.fail(part.request, "removed" if isinstance(error, FileNotFoundError) else "damaged")
            return
        try:
            batch.count(self._segments.pread(at.segment, part.pieces(), at.offset))
        except OSError:
            batch.fail(part.request, "removed")

    def _check(self, batch: ReadBatch, run: list[Part]) -> None:
        """Headers and tokens of all, then all checksums in one call."""
        headers = [(part, decode(part.head.tobytes())) for part in run if not batch.outcome(part.request)]
        sound = [(part, header) for part, header in headers if header is not None and self._agrees(batch, part, header)]
        sums = checksums.intact([(part.target, part.form.pieces, header.sums) for part, header in sound])
        good = {id(part) for (part, _), whole in zip(sound, sums, strict=True) if whole}
        _fail(batch, [part for part, _ in headers if id(part) not in good], "damaged")
        for part, header in sound:
            if id(part) in good and batch.requests[part.request].record.tail:
                self._unpack(batch, part, header)

    def _agrees(self, batch: ReadBatch, part: Part, header: RecordHeader) -> bool:
        request = batch.requests[part.request]
        return header.payload_bytes == len(part.target) and self._packer.agrees(
            header, request.record, part.index, part.form, request.ids, request.roles
        )

    def _unpack(self, batch: ReadBatch, part: Part, header: RecordHeader) -> None:
        start = header.extra_offset - header.payload_offset - header.payload_bytes
        batch.keep_hidden(part.request, hidden_of(header, part.rest[start : start + header.extra_bytes]))
        request = batch.requests[part.request]
        copy_rows(
            part.whole, part.layout, request.payload, self._packer.layout, request.record.tokens, part.group.layers
        )

    def _report(self, batch: ReadBatch) -> None:
        for reason in ("damaged", "removed"):
            numbers = [i for i in range(len(batch.requests)) if batch.outcome(i) == reason]
            if numbers:
                self._damaged([batch.requests[i].record for i in numbers], reason)


def _runs(parts: Sequence[Part]) -> list[list[Part]]:
    """Long ones only where nothing that is mapped has to come from the disk."""
    runs = list(runs_of(parts)) or [[]]
    return runs if all(map(_at_hand, runs)) else list(runs_of(parts, COLD_BYTES))


def _at_hand(run: list[Part]) -> bool:
    return not run or run[0].mapped is None or _in_memory(run)


def _in_memory(run: list[Part]) -> bool:
    """Judged by its ends."""
    return bool(run) and all(in_file_cache(part.mapped) for part in run[:1] + run[-1:])


def _fail(batch: ReadBatch, run: Sequence[Part], reason: str) -> None:
    for part in run:
        batch.fail(part.request, reason)
