"""The one gate for background work: nothing slow runs on the main thread, and results come back to it.

Writes go through a pool of exactly one worker, so two writes never race; reads share a small pool.
Results travel by one queued signal and are handed to plain callables on the main thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot

log = logging.getLogger(__name__)

LONGEST_READ_S = 10.0
Then = Callable[[Any], object]
Failed = Callable[[Exception], object]


@dataclass(frozen=True)
class _Outcome:
    then: Then | None
    failed: Failed | None
    value: Any
    error: Exception | None


class Tasks(QObject):
    """Runs callables off the main thread.

    Signals:
        failed: an exception nobody asked to handle (argument: the exception); the window shows it.

    `work` must not touch widgets. `then` and `failed` run on the main thread; if they are bound to a
    QObject that was deleted meanwhile, the result is dropped.
    """

    failed = Signal(object)
    _finished = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._writes = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._reads = ThreadPoolExecutor(3, thread_name_prefix="read")
        self._lock = threading.Lock()
        self._closed = False
        self._running: set[futures.Future[None]] = set()
        self._finished.connect(self._deliver, Qt.ConnectionType.QueuedConnection)

    def read(self, work: Callable[[], Any], then: Then | None = None, failed: Failed | None = None) -> None:
        self._submit(self._reads, work, then, failed)

    def write(self, work: Callable[[], Any], then: Then | None = None, failed: Failed | None = None) -> None:
        self._submit(self._writes, work, then, failed)

    def close(self, wait: bool = True) -> None:
        """Finishes queued writes and reads that run (when `wait`; reads for LONGEST_READ_S at most: what they read is
        closed next), drops queued reads. No result is delivered afterwards."""
        with self._lock:
            self._closed = True
        self._reads.shutdown(wait=False, cancel_futures=True)
        self._writes.shutdown(wait=wait)
        if wait:
            with self._lock:
                running = list(self._running)
            futures.wait(running, LONGEST_READ_S)

    def _submit(self, pool: Executor, work: Callable[[], Any], then: Then | None, failed: Failed | None) -> None:
        if not self._closed:
            task = pool.submit(self._run, work, then, failed)
            with self._lock:
                self._running.add(task)
            task.add_done_callback(self._end)

    def _end(self, task: futures.Future[None]) -> None:
        with self._lock:
            self._running.discard(task)

    def _run(self, work: Callable[[], Any], then: Then | None, failed: Failed | None) -> None:
        try:
            outcome = _Outcome(then, failed, work(), None)
        except Exception as error:
            outcome = _Outcome(then, failed, None, error)
        with self._lock:  # no result is on its way any more once `close` has returned
            if not self._closed:
                self._finished.emit(outcome)

    @Slot(object)
    def _deliver(self, outcome: _Outcome) -> None:
        if self._closed:
            return
        if outcome.error is None:
            if outcome.then is not None and _alive(outcome.then):
                outcome.then(outcome.value)
        elif outcome.failed is not None:
            if _alive(outcome.failed):
                outcome.failed(outcome.error)
        else:
            log.error("background work failed", exc_info=outcome.error)
            self.failed.emit(outcome.error)


def _alive(callback: Callable[..., object]) -> bool:
    owner = getattr(callback, "__self__", None)
    return not isinstance(owner, QObject) or shiboken6.isValid(owner)
