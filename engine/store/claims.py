"""Which pages this process computes, as others see it: advisory locks on single bytes of a file, a byte per key.

The system lets go of them when the process ends, however it ends: nothing is written, and nothing is to be cleaned up.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from contextlib import suppress
from pathlib import Path

from engine.kv.keys import Key
from engine.store.locks import private_file

FILE = "claims.lock"
_HELD = (errno.EACCES, errno.EAGAIN)


class ClaimFile:
    """Any thread. Locks of this kind belong to the process: two claims of it are no conflict."""

    def __init__(self, folder: Path) -> None:
        self._path, self._lock = folder / FILE, threading.Lock()
        self._descriptor = -1
        self.open_again()

    def open_again(self) -> None:
        """After the folder was made again. What was claimed before is not any more."""
        with self._lock, suppress(OSError):
            self._close()
            self._descriptor = private_file(self._path)

    def close(self) -> None:
        with self._lock:
            self._close()

    def claim(self, key: Key) -> bool:
        """False: another process has it. Where the file system knows no locks everybody has everything."""
        try:
            self._set(key, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in _HELD
        return True

    def release(self, key: Key) -> None:
        with suppress(OSError):
            self._set(key, fcntl.LOCK_UN)

    def _set(self, key: Key, kind: int) -> None:
        with self._lock:
            if self._descriptor >= 0:
                fcntl.lockf(self._descriptor, kind, 1, int.from_bytes(key[:8], "big") >> 2)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
