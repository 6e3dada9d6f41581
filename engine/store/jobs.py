"""What the writing thread is given to do, and what of it is not durable yet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engine.kv.disk import Head, StateRequest, WriteRequest
from engine.store.rows import NewRecord


@dataclass
class Job:
    """One thing to do in order: write a record, move a head, forget, run `task`; or `follow`, once it is durable;
    or `handed`, once what was appended is in the file, or refused (False)."""

    request: WriteRequest | None = None
    state: StateRequest | None = None
    head: Head | None = None
    forget: str = ""
    delete: bool = False
    task: Callable[[], None] | None = None
    follow: Callable[[], None] | None = None
    handed: Callable[[bool], None] | None = None
    done: Callable[[bool], None] = lambda durable: None
    bytes: int = 0
    save: int = 0  # which save of the conversation it belongs to


class JobQueue:
    """Jobs in order, from any thread to the one that writes. Attributes: pending_bytes: of unsettled jobs."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._saves: dict[str, int] = {}
        self._submitted = self._settled = self.pending_bytes = 0
        self._hurry = self._closing = False

    # --- any thread ---

    def put(self, job: Job) -> None:
        with self._changed:
            conversation = job.request.conversation if job.request else job.head.conversation if job.head else ""
            job.save = self._saves.get(conversation, 0)
            if job.head:
                self._saves[conversation] = job.save + 1
            self._jobs.append(job)
            self._submitted += 1
            self.pending_bytes += job.bytes
            self._changed.notify_all()

    def flush(self, alive: Callable[[], bool], timeout: float | None) -> bool:
        """Waits until all jobs put so far are settled, as long as the thread that does it is `alive`."""
        with self._changed:
            target = self._submitted
            self._hurry = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._settled >= target or not alive(), timeout)

    def close(self) -> None:
        """No job comes any more."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    # --- the thread ---

    def next(self, patience: float | None) -> Job | None:
        """The next job, or None when it is time to sync: somebody waits, or none came for `patience` seconds."""
        with self._changed:
            while not self._jobs:
                if self._closing or (self._hurry and self._settled < self._submitted):
                    return None
                self._hurry = False
                if not self._changed.wait(patience) and patience is not None:
                    return None
            return self._jobs.popleft()

    @property
    def is_over(self) -> bool:
        return self._closing and not self._jobs

    def put_back(self, jobs: Sequence[Job]) -> None:
        """In front of all others."""
        with self._changed:
            self._jobs.extendleft(reversed(jobs))

    def supersedes(self, job: Job) -> bool:
        """A later save of the same conversation is queued already, and no other conversation ends at this tail."""
        conversation = job.request.conversation if job.request and job.request.tail else ""
        conversation = job.head.conversation if job.head else conversation
        if not conversation or self._saves.get(conversation, 0) <= job.save + 1:
            return False
        key = job.request.key if job.request else None
        with self._changed:
            return not any(other.head and other.head.tail == key for other in self._jobs if key)

    def settled(self, jobs: Sequence[Job]) -> None:
        with self._changed:
            self._settled += len(jobs)
            self.pending_bytes -= sum(job.bytes for job in jobs)
            self._changed.notify_all()


@dataclass
class Unpublished:
    """What was appended since the last sync."""

    records: list[NewRecord] = field(default_factory=list)
    heads: dict[str, Head] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    bytes: int = 0
    since: float = 0.0
