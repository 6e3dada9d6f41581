"""Measures how long the main loop is away: a timer thread knocks, the main loop answers.

Used by the tests and, with PAGEKEEP_WATCHDOG set, by a running window.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot

BUSY_LIMIT = 0.1  # seconds of computing
WAIT_LIMIT = 0.6  # seconds of waiting: a lock or a disk, and other programs where the system does not tell of them


@dataclass(frozen=True)
class Stall:
    """The main loop did not answer for `seconds`, of which it computed for `busy`. `kept_off`: for how long it was
    ready and had no processor; what it waited for is its own affair.

    `where` is its stack when that was noticed.
    """

    seconds: float
    busy: float
    kept_off: float
    where: str

    @property
    def is_ours(self) -> bool:
        """Not explained by other programs that had the processor meanwhile."""
        return self.busy > BUSY_LIMIT or self.seconds - self.kept_off > WAIT_LIMIT


class Watchdog(QObject):
    """Start it on the main thread; `stop` returns the stalls above `limit` seconds, longest first."""

    _knocked = Signal()

    def __init__(self, limit: float = 0.1, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._limit = limit
        self._main = threading.get_ident()
        self._cpu_clock = _cpu_clock(self._main)
        self._queued = partial(queued_seconds, threading.get_native_id())
        self._answered = threading.Event()
        self._ending = threading.Event()
        self.stalls: list[Stall] = []
        self._knocked.connect(self._answer, Qt.ConnectionType.QueuedConnection)
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> Watchdog:
        self._thread.start()
        return self

    def stop(self) -> list[Stall]:
        self._ending.set()
        self._answered.set()
        self._thread.join()
        return sorted(self.stalls, key=lambda stall: -stall.seconds)

    @Slot()
    def _answer(self) -> None:
        self._answered.set()

    def _watch(self) -> None:
        while not self._ending.wait(0.02):
            self._answered.clear()
            queued = self._queued()
            begun, busy = time.perf_counter(), self._cpu_clock()
            self._knocked.emit()
            if self._answered.wait(self._limit):
                continue
            where = _stack(self._main)
            self._answered.wait()
            if not self._ending.is_set():
                seconds = time.perf_counter() - begun
                self.stalls.append(Stall(seconds, self._cpu_clock() - busy, self._queued() - queued, where))


def _cpu_clock(thread: int) -> Callable[[], float]:
    """Seconds a thread has computed; wall time where the system does not tell."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.perf_counter
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


def queued_seconds(thread: int) -> float:
    """For which a thread of this process (its number in the system) was ready and had no processor; 0 where the system
    does not tell."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)[-6:]) if frame else ""
