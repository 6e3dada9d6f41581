"""Opening the store's folder, and noticing that files were removed under whoever has it open."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from engine.kv.log import KvLog
from engine.kv.notices import Notice
from engine.store.index import Index
from engine.store.locks import maintenance, private_folder
from engine.store.recovery import Recovered, is_damage, repair

INDEX_NAME = "index.sqlite"
SEGMENTS_NAME = "segments"
REMOVED = Notice(
    "The folder of saved conversations was removed while it was in use.",
    "It was made again; what lay only there is read again when it is needed.",
    "Nothing needs to be done.",
)
_TRIES, _PAUSE_SECONDS = 5, 0.05
_Identity = tuple[int, int]


class Place:
    """The folder as it was opened last. `make`: an index at a path; `log`: told of one made anew.

    The segments' folder is held open, so that its number is not given to another one meanwhile; the index's file is
    held by its connections.
    """

    def __init__(self, folder: Path, make: Callable[[Path], Index], log: KvLog) -> None:
        self._index, self._segments = folder / INDEX_NAME, folder / SEGMENTS_NAME
        self._make, self._log = make, log
        self._known: tuple[_Identity | None, _Identity | None] = (None, None)
        self._held = -1

    def open(self) -> tuple[Recovered, Index]:
        """An index whose damage shows only when all of it is read is made anew as well. OSError, sqlite3.Error."""
        folder = self._index.parent
        recovered = prepare(folder)
        try:
            index = self._make(self._index)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            recovered, index = prepare(folder, anew=True), self._make(self._index)
        recovered.note(self._log)
        self.close()
        self._held = os.open(self._segments, os.O_RDONLY | os.O_CLOEXEC)
        self._known = self._found()
        return recovered, index

    def open_again(self) -> tuple[Recovered, Index]:
        """The same, while somebody may still be at removing files."""
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError, sqlite3.OperationalError):
                return self.open()
            time.sleep(_PAUSE_SECONDS)
        return self.open()

    def is_lost(self) -> bool:
        """The index or the segments' folder is not there any more, or another one is."""
        return self._found() != self._known

    def has_segments(self) -> bool:
        """The segments' folder is the one that was opened."""
        return self._found()[1] == self._known[1]

    def close(self) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def _found(self) -> tuple[_Identity | None, _Identity | None]:
        return _identity(self._index), _identity(self._segments)


def _identity(path: Path) -> _Identity | None:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def prepare(folder: Path, anew: bool = False) -> Recovered:
    """Makes the folders and brings index and segments into agreement. OSError, sqlite3.Error."""
    private_folder(folder)
    private_folder(folder / SEGMENTS_NAME)
    with maintenance(folder) as free:
        return repair(folder / INDEX_NAME, folder / SEGMENTS_NAME, anew) if free else Recovered()
