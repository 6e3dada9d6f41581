"""File locks between processes, and private files."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def private_folder(folder: Path) -> None:
    """Makes the folder (and no other user's business of it)."""
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    if folder.stat().st_mode & 0o777 != FOLDER_MODE:
        folder.chmod(FOLDER_MODE)


def private_file(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """Opens (and makes) a file that only its owner may read; returns the descriptor."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def try_lock(descriptor: int, exclusive: bool) -> bool:
    """Takes (or converts to) the lock if nobody is in the way."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def lock(descriptor: int) -> None:
    """Waits until nobody is in the way; for files whose lock others hold only for a moment."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def is_locked(path: Path) -> bool:
    """Whether a living process writes this segment."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, exclusive=False)
    finally:
        os.close(descriptor)


@contextmanager
def maintenance(folder: Path, seconds: float = 5.0) -> Iterator[bool]:
    """One process at a time repairs, evicts or compacts. Yields False if another one is at it."""
    descriptor = private_file(folder / "maintenance.lock")
    end = time.monotonic() + seconds
    try:
        while not (got := try_lock(descriptor, exclusive=True)) and time.monotonic() < end:
            time.sleep(0.01)
        yield got
    finally:
        os.close(descriptor)
