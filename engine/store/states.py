"""Snapshots of recurrent layers in the store: one record each, checked layer by layer like a page."""

from __future__ import annotations

import sqlite3
import time

import numpy as np
import numpy.typing as npt

from engine.kv.disk import Location, StateRecord, StateRequest
from engine.kv.keys import Ids, Key, Roles
from engine.store.record import Kind, RecordHeader, checksum, decode, intact, pieces_of
from engine.store.segments import Segments

Bytes = npt.NDArray[np.uint8]
_OF_PARENT = (
    "SELECT key, start, tokens, segments.name, offset, length, payload FROM records JOIN segments ON segments.id = "
    f"segment WHERE model = ? AND parent = ? AND kind = {int(Kind.STATE)}"
)


def state_header(request: StateRequest, fingerprint: bytes, layout_id: int) -> RecordHeader:
    sums = b"".join(checksum(request.state[start:stop]) for start, stop in pieces_of(request.stops).tolist())
    return RecordHeader(
        Kind.STATE, fingerprint, request.key, request.parent, request.start, request.ids, request.roles, 0, layout_id,
        sums, request.stops, request.numerics, "", time.time_ns(), len(request.state),
    )  # fmt: skip


def states_of(db: sqlite3.Connection, model: int, parent: Key) -> list[StateRecord]:
    rows = db.execute(_OF_PARENT, (model, parent)).fetchall()
    return [StateRecord(Key(row[0]), parent, row[1], row[2], Location(*row[3:])) for row in rows]


def read_state(
    segments: Segments, fingerprint: bytes, numerics: str, record: StateRecord, ids: Ids, roles: Roles
) -> Bytes | None:
    """uint8 [state bytes], or None if it is damaged, gone, of other arithmetic, or of other tokens."""
    data, at = np.empty(record.place.length, np.uint8), record.place
    try:
        if segments.pread(at.segment, [data.data], at.offset) < at.length:
            return None
    except OSError:
        return None
    header = decode(data[: at.payload].tobytes())
    if header is None or (header.kind, header.fingerprint, header.key) != (Kind.STATE, fingerprint, record.key):
        return None
    same = np.array_equal(header.ids, ids) and np.array_equal(header.roles, roles) and header.numerics == numerics
    payload = data[at.payload : at.payload + header.payload_bytes]
    return payload if same and intact(header, payload) else None
