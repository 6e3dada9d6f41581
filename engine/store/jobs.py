"""What the writing thread is given to do, and what of it is not durable yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.kv.disk import Head, StateRequest, WriteRequest
from engine.store.rows import NewRecord


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
