"""Pages on disk that no conversation's end leads to: of prompts that were cut off before their end was saved (a kill, a
stop), and of what was edited or removed since. They are found again by their keys, or evicted."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from engine.kv.layout import kv_types_in
from engine.store.inspect import whole_path
from engine.store.record import Kind


@dataclass(frozen=True)
class Unclaimed:
    """Of one model, as ConversationEntry; `tokens` in `pages`, ends included; `used`: unix time, the latest."""

    model: str
    fingerprint: str
    kv_type: str
    pages: int
    tokens: int
    bytes: int
    used: float


def unclaimed(db: sqlite3.Connection) -> list[Unclaimed]:
    """Model by model, the largest first."""
    found = [_of_model(db, *row) for row in db.execute("SELECT id, name, fingerprint, layout FROM models").fetchall()]
    return sorted((entry for entry in found if entry.pages), key=lambda entry: -entry.bytes)


def _of_model(db: sqlite3.Connection, model: int, name: str, fingerprint: bytes, layout: str) -> Unclaimed:
    claimed = set[bytes]()
    for last, tail in db.execute("SELECT last, tail FROM heads WHERE model = ?", (model,)).fetchall():
        claimed.update(whole_path(db, model, last, tail))
    query = (
        "SELECT key, max(tokens), sum(length), max(used) FROM records WHERE model = ? AND kind IN (?, ?) GROUP BY key"
    )
    rows = [row for row in db.execute(query, (model, Kind.PAGE, Kind.TAIL)).fetchall() if row[0] not in claimed]
    tokens, size = sum(row[1] for row in rows), sum(row[2] for row in rows)
    used = max((row[3] for row in rows), default=0.0)
    return Unclaimed(name, fingerprint.hex(), kv_types_in(layout), len(rows), tokens, size, used)
