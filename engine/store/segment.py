"""Segment files: appended to by one process, never truncated, only unlinked. FORMAT.md describes the bytes."""

from __future__ import annotations

import os
import secrets
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.store.locks import lock, private_file
from engine.store.mapping import gather
from engine.store.record import BLOCK, MAGIC, STRETCH, RecordHeader, checksum, decode, needs_more

SEGMENT_MAGIC = b"PKSEGMNT"
VERSION = 1
_HEAD = struct.Struct("<8sIIQ")
_PART, _SLOW_SECONDS = 256 << 10, 0.005
_DATA_SYNC = getattr(os, "fdatasync", os.fsync)
Buffer = bytes | npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Found:
    """A record found by scanning; `offset` in the file."""

    offset: int
    header: RecordHeader


def _locked_file(folder: Path) -> tuple[str, int]:
    """A new segment under this process's lock: its name and descriptor.

    Who looks whether a segment is locked holds it for a moment, so this waits. One that was taken for abandoned and
    removed before it was locked is made anew.
    """
    while True:
        name = f"{time.time_ns() // 1000:016x}-{secrets.token_hex(4)}.seg"
        descriptor = private_file(folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        lock(descriptor)
        if os.fstat(descriptor).st_nlink:
            return name, descriptor
        os.close(descriptor)


class SegmentWriter:
    """Appends records. The file is locked as long as this process may still write to it.

    It is written in whole aligned stretches: what begins one is held back until the next records fill it or `sync`
    comes, because the file cache then keeps it in pieces of 2 MB (see mapping.py). Written in records of 3 MB, 184 MB
    took 6 ms to map, in stretches 0.1. A stretch that came to the file in parts is gathered once it is durable.

    Nobody interrupts such a write, and a step may wait for the processor that it holds. Mostly that is 1 ms; on virtual
    machines whose host finds memory only when it is touched it is 25 (parts of 256 KB: 3, gathering 64 MB 50 ms of the
    disk and 8 of a processor). Once a write was seen to be slow, the segment's others are made in parts.

    Attributes: name, path; end: offset of the next record.
    """

    def __init__(self, folder: Path) -> None:
        self.name, self._descriptor = _locked_file(folder)
        self.path = folder / self.name
        try:
            _write_all(self._descriptor, [_file_header()], 0)
        except OSError:
            self.close()
            self.path.unlink(missing_ok=True)
            raise
        self.end = BLOCK
        self._held: list[Buffer] = []  # not written yet, in order, up to `end`
        self._held_bytes = 0
        self._named = False
        self._parted = [0]  # stretches in the file that were not written in one piece; the first has the file's head
        self._slow = False

    @property
    def is_empty(self) -> bool:
        return self.end == BLOCK

    @property
    def held_bytes(self) -> int:
        """Appended, but not in the file yet."""
        return self._held_bytes

    def append(self, header: RecordHeader, pieces: Sequence[Buffer]) -> int:
        """Adds a record; `pieces` fill it from the payload's offset on and must not change before `sync`.

        Returns its offset. OSError: nothing since the last `sync` counts as written, and no more can be appended.
        """
        size = header.payload_offset + sum(len(piece) for piece in pieces)
        padding = bytes(header.record_bytes - size)
        self._held += [header.encode(), *pieces, padding]
        self._held_bytes += header.record_bytes
        offset, self.end = self.end, self.end + header.record_bytes
        self._write_until(self.end - self.end % STRETCH)
        return offset

    def _write_until(self, stop: int) -> None:
        start = self.end - self._held_bytes
        if stop <= start:
            return
        ready, self._held = _split(self._held, stop - start)
        self._held_bytes = self.end - stop
        while start < stop:
            size = min(stop - start, _PART if self._slow else STRETCH - start % STRETCH)
            part, ready = _split(ready, size)
            self._write(part, start, size)
            start += size

    def _write(self, pieces: Sequence[Buffer], start: int, size: int) -> None:
        began = time.thread_time()
        _write_all(self._descriptor, pieces, start)
        self._slow = self._slow or (size > _PART and time.thread_time() - began > _SLOW_SECONDS)
        stretch = start - start % STRETCH
        if size < STRETCH and stretch not in self._parted:
            self._parted.append(stretch)

    def sync(self) -> None:
        """Makes what was appended durable, and the file's name the first time. OSError: as for `append`."""
        self.write_out()
        _DATA_SYNC(self._descriptor)
        gather(self.path, self._whole_parted())
        if not self._named:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
            self._named = True

    def write_out(self) -> None:
        """Holds nothing back: a later process finds all of it if this one is killed. OSError: as for `append`."""
        self._write_until(self.end)

    def _whole_parted(self) -> list[int]:
        """Stretches that were written in parts and now have all of them; each is told once."""
        whole = [start for start in self._parted if start + STRETCH <= self.end]
        self._parted = [start for start in self._parted if start not in whole]
        return whole

    def close(self) -> None:
        """Lets go of the file; what was not synced is lost."""
        self._held = []
        os.close(self._descriptor)


def scan(path: Path, start: int) -> Iterator[Found]:
    """All intact headers from `start` on whose records are complete. Damaged stretches are stepped over."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        position = max(BLOCK, -(-start // BLOCK) * BLOCK)
        while position < size:
            header = read_header(descriptor, position)
            if header is None or position + header.record_bytes > size:
                position += BLOCK
                continue
            yield Found(position, header)
            position += header.record_bytes
    finally:
        os.close(descriptor)


def read_header(descriptor: int, offset: int) -> RecordHeader | None:
    """The record header at `offset`, None if there is no intact one."""
    data = os.pread(descriptor, BLOCK, offset)
    if data[: len(MAGIC)] != MAGIC:
        return None
    wanted = needs_more(data)
    if wanted > len(data):
        data = os.pread(descriptor, wanted, offset)
    return decode(data)


def _file_header() -> bytes:
    body = _HEAD.pack(SEGMENT_MAGIC, VERSION, BLOCK, time.time_ns())
    return (body + checksum(body)).ljust(BLOCK, b"\0")


def _split(pieces: Sequence[Buffer], size: int) -> tuple[list[Buffer], list[Buffer]]:
    """The first `size` bytes, and the rest."""
    first, rest = list[Buffer](), list[Buffer]()
    for piece in pieces:
        count = min(size, len(piece))
        first += [piece[:count]] if count else []
        rest += [piece[count:]] if count < len(piece) else []
        size -= count
    return first, rest


def _write_all(descriptor: int, pieces: Sequence[Buffer], offset: int) -> None:
    left = [memoryview(piece if isinstance(piece, bytes) else piece.data) for piece in pieces if len(piece)]
    while left:
        written = os.pwritev(descriptor, left, offset)
        offset += written
        while left and written >= len(left[0]):
            written -= len(left.pop(0))
        if left:
            left[0] = left[0][written:]
