"""Whether a record in a segment is what the index says: for `pagekeep cache verify`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.store.record import RecordHeader, intact
from engine.store.segment import read_header


@dataclass(frozen=True)
class Damage:
    """A record that cannot be used, and why."""

    segment: str
    offset: int
    key: str
    start: int
    tokens: int
    why: str


@dataclass(frozen=True)
class VerifyReport:
    records: int
    bytes: int
    damaged: tuple[Damage, ...]


def why_unusable(
    segments: Path, segment: str | None, offset: int, length: int, key: bytes, parent: bytes
) -> str:
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
