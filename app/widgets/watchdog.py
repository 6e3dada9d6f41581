"""Measures how long the main loop is away: a timer thread knocks, the main loop answers.

Used by the tests and, with PAGEKEEP_WATCHDOG set, by a running window.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt, Signal, Slot


@dataclass(frozen=True)
class Stall:
    """The main loop did not answer for `seconds`; `where` is its stack when that was noticed."""

    seconds: float
    where: str


class Watchdog(QObject):
    """Start it on the main thread; `stop` returns the stalls above `limit` seconds, longest first."""

    _knocked = Signal()

    def __init__(self, limit: float = 0.1, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._limit = limit
        self._main = threading.get_ident()
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
            begun = time.perf_counter()
            self._knocked.emit()
            if self._answered.wait(self._limit):
                continue
            where = _stack(self._main)
            self._answered.wait()
            if not self._ending.is_set():
                self.stalls.append(Stall(time.perf_counter() - begun, where))


def _stack(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "".join(traceback.format_stack(frame)[-6:]) if frame else ""
