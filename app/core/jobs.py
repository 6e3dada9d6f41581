"""Imports and downloads on worker threads: one after another, with progress, stopped at any time."""

from __future__ import annotations

import logging
import queue
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from app.core.events import JobId

log = logging.getLogger(__name__)
Run = Callable[["Job"], None]


@dataclass
class Job:
    """`run` does the work and reports; it looks at `cancelled` often."""

    run: Run
    id: JobId = field(default_factory=lambda: JobId(uuid.uuid4().hex))
    stopped: threading.Event = field(default_factory=threading.Event)

    def cancelled(self) -> bool:
        return self.stopped.is_set()


class JobThread:
    """A daemon thread that works off jobs in order; started with the first one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._jobs: dict[JobId, Job] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, run: Run) -> JobId:
        job = Job(run)
        with self._lock:
            if self._closed:
                return job.id
            self._jobs[job.id] = job
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
        self._queue.put(job)
        return job.id

    def cancel(self, job: JobId) -> bool:
        """False where it has ended, or is none of this thread's."""
        with self._lock:
            found = self._jobs.get(job)
        if found is not None:
            found.stopped.set()
        return found is not None

    @property
    def busy(self) -> bool:
        with self._lock:
            return bool(self._jobs)

    def close(self, timeout: float) -> None:
        """Stops everything; waits for the job that runs."""
        with self._lock:
            self._closed = True
            jobs, thread = list(self._jobs.values()), self._thread
        for job in jobs:
            job.stopped.set()
        self._queue.put(None)
        if thread is not None:
            thread.join(timeout)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            try:
                job.run(job)
            except Exception:
                log.exception("a job failed without saying why")
            with self._lock:
                self._jobs.pop(job.id, None)
