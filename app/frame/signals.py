"""SIGINT and SIGTERM close the window as the reader would: turns stop, state is saved."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

from PySide6.QtCore import QObject, QSocketNotifier


class SignalWatch(QObject):
    """Python's signal handlers only run between bytecodes; a pipe wakes the event loop so that they do."""

    def __init__(self, act: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._act = act
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._previous_fd = signal.set_wakeup_fd(self._writer)
        self._notifier = QSocketNotifier(self._reader, QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)
        self._previous = {
            number: signal.signal(number, lambda *_: self._act()) for number in (signal.SIGINT, signal.SIGTERM)
        }

    def stop(self) -> None:
        """Puts back what was there before."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._previous_fd)
        self._notifier.setEnabled(False)
        os.close(self._reader)
        os.close(self._writer)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 64)
