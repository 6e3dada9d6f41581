"""Open segment files, for reading."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from engine.kv.disk import Location
from engine.store.record import RecordHeader
from engine.store.segment import read_header

_OPEN_FILES = 64


class Segments:
    """Open descriptors for reading, by segment name. An unlinked segment stays readable while it is open here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._open: OrderedDict[str, int] = OrderedDict()

    def pread(self, name: str, pieces: Sequence[memoryview], offset: int) -> int:
        """Fills the pieces from a segment; returns the bytes read, fewer at its end. OSError."""
        descriptor = self.duplicate(name)
        try:
            return _read_all(descriptor, list(pieces), offset)
        finally:
            os.close(descriptor)

    def duplicate(self, name: str) -> int:
        """An open descriptor of a segment, to be closed by the caller. OSError."""
        with self._lock:
            return os.dup(self._descriptor(name))

    def header(self, at: Location) -> RecordHeader | None:
        try:
            with self._lock:
                return read_header(self._descriptor(at.segment), at.offset)
        except OSError:
            return None

    def close(self) -> None:
        with self._lock:
            for descriptor in self._open.values():
                os.close(descriptor)
            self._open.clear()

    def _descriptor(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
            if len(self._open) > _OPEN_FILES:
                os.close(self._open.popitem(last=False)[1])
        self._open.move_to_end(name)
        return self._open[name]


def _read_all(descriptor: int, pieces: list[memoryview], offset: int) -> int:
    total = 0
    while pieces:
        count = os.preadv(descriptor, pieces, offset + total)
        if not count:
            break
        total += count
        while pieces and count >= len(pieces[0]):
            count -= len(pieces.pop(0))
        if pieces:
            pieces[0] = pieces[0][count:]
    return total
