"""Whether a record in a segment is what the index says: for `pagekeep cache verify`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.store.inspect import Link, whole_path
from engine.store.record import RecordHeader, intact
from engine.store.segment import read_header


@dataclass(frozen=True)
class Damage:
    """A record that cannot be used, and why. `conversations`: those that go through it."""

    segment: str
    offset: int
    key: str
    start: int
    tokens: int
    why: str
    conversations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lost:
    """Tokens of a conversation that went with their file, and were not computed again since."""

    conversation: str
    start: int
    tokens: int


@dataclass(frozen=True)
class VerifyReport:
    """`records`, `bytes`: what the index knows. `lost_records`: pages that went with their files, in `lost` by
    conversation."""

    records: int
    bytes: int
    damaged: tuple[Damage, ...]
    lost_records: int = 0
    lost: tuple[Lost, ...] = ()


class Users:
    """Which conversations go through what, as it is now."""

    def __init__(self, db: sqlite3.Connection) -> None:
        heads = db.execute("SELECT conversation, model, last, tail FROM heads ORDER BY saved DESC").fetchall()
        self._paths = [(name, model, whole_path(db, model, last, tail)) for name, model, last, tail in heads]

    def of(self, model: int, key: bytes) -> tuple[str, ...]:
        return tuple(name for name, other, way in self._paths if other == model and key in way)

    def lost(self) -> tuple[Lost, ...]:
        return tuple(part for name, _, way in self._paths for part in _lost(name, way.values()))

    def lost_records(self) -> int:
        """However many conversations go through each."""
        return len({(m, key) for _, m, way in self._paths for key, link in way.items() if link.lost == "removed"})


def _lost(conversation: str, links: Iterable[Link]) -> list[Lost]:
    """Those that follow each other are one."""
    found: list[Lost] = []
    for link in links:
        if link.lost != "removed":
            continue
        if found and found[-1].start + found[-1].tokens == link.start:
            found[-1] = Lost(conversation, found[-1].start, found[-1].tokens + link.tokens)
        else:
            found.append(Lost(conversation, link.start, link.tokens))
    return found


def why_unusable(segments: Path, segment: str | None, offset: int, length: int, key: bytes, parent: bytes) -> str:
    """Why a record cannot be used, "" if it can."""
    if segment is None:
        return "its file is not in the index"
    try:
        descriptor = os.open(segments / segment, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return f"its file cannot be opened: {error.strerror}"
    try:
        header = read_header(descriptor, offset)
        if header is None:
            return "its header is damaged"
        if (header.key, header.parent, header.record_bytes) != (key, parent, length):
            return "another record lies in its place"
        return "" if _payload_intact(descriptor, offset, header) else "its checksum does not agree"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    finally:
        os.close(descriptor)


def _payload_intact(descriptor: int, offset: int, header: RecordHeader) -> bool:
    data = os.pread(descriptor, header.payload_bytes, offset + header.payload_offset)
    return intact(header, np.frombuffer(data, np.uint8))
