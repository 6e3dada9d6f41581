"""Locks between processes that the system lets go when their holder dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rag.errors import IntakeCancelled
from rag.index.database import NOT_WRITABLE, not_writable

RETRY_SECONDS = 0.1


@contextmanager
def exclusive(path: Path, cancelled: Callable[[], bool]) -> Iterator[None]:
    """Holds the lock file's lock; waits for another holder, and raises `IntakeCancelled` if told to while waiting.

    Each use opens the file anew, so it also keeps threads of one process apart. A holder may remove the file.
    DocumentError of kind "library": the library can only be read.
    """
    handle = _locked(path, cancelled)
    try:
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock at this moment."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def _locked(path: Path, cancelled: Callable[[], bool]) -> int:
    while True:
        handle = _opened(path)
        if _try_lock(handle) and _is_still(path, handle):
            return handle
        os.close(handle)
        if cancelled():
            raise IntakeCancelled(str(path))
        time.sleep(RETRY_SECONDS)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        if error.errno in NOT_WRITABLE:
            raise not_writable(path.parent.parent, error) from error
        raise


def _is_still(path: Path, handle: int) -> bool:
    """False when the last holder has removed the file: then others may lock a new one of its name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


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
