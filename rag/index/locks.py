"""Locks between processes that the system lets go when their holder dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rag.errors import IntakeCancelled

RETRY_SECONDS = 0.1


@contextmanager
def exclusive(path: Path, cancelled: Callable[[], bool]) -> Iterator[None]:
    """Holds the lock file's lock; waits for another holder, and raises `IntakeCancelled` if told to while waiting.

    Each use opens the file anew, so it also keeps threads of one process apart.
    """
    handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        while not _try_lock(handle):
            if cancelled():
                raise IntakeCancelled(str(path))
            time.sleep(RETRY_SECONDS)
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
