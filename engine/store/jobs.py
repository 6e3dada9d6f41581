"""What the writing thread is given to do, and what of it is not durable yet."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.kv.disk import NOT_SAVED, Head, Notice, StateRequest, WriteRequest
from engine.store.rows import NewRecord

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass
class Job:
    """One thing to do in order: write a record, move a head, forget, run `task`; or `follow`, once it is durable."""

    request: WriteRequest | None = None
    state: StateRequest | None = None
    head: Head | None = None
    forget: str = ""
    delete: bool = False
    task: Callable[[], None] | None = None
    follow: Callable[[], None] | None = None
    done: Callable[[bool], None] = lambda durable: None
    bytes: int = 0
    save: int = 0  # which save of the conversation it belongs to


@dataclass
class Unpublished:
    """What was appended since the last sync."""

    records: list[NewRecord] = field(default_factory=list)
    heads: dict[str, Head] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    bytes: int = 0
    since: float = 0.0


def refusal(error: Exception) -> Notice:
    """What the reader is told where writing failed."""
    full = isinstance(error, OSError) and error.errno in _FULL
    full = full or (isinstance(error, sqlite3.Error) and "full" in str(error))
    return Notice(
        NOT_SAVED,
        "The disk is full, or the disk budget is used up." if full else f"Writing failed: {error}.",
        "They go on from memory; saving is tried again. Free some space, or raise the disk budget."
        if full
        else "They go on from memory; saving is tried again.",
    )
