"""Pages that were lost from within a conversation: what stood in their place, so that its path goes on before them.

What a key follows is part of the key (FORMAT.md), so what is noted here is never wrong, at most not needed any more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

LOST = frozenset(("damaged", "removed"))  # reasons; eviction takes leaves, so that nothing is left behind one
_NAME = "'hole ' || model || ' ' || hex(key)"
_VALUE = "hex(parent) || ' ' || start || ' ' || tokens"


class Hole(NamedTuple):
    """A page or tail that is not on disk any more, and the `reason` (see LOST)."""

    parent: bytes
    start: int
    tokens: int
    reason: str


def note_holes(db: sqlite3.Connection, model: int, keys: Iterable[bytes], reason: str) -> None:
    """Before the rows of the keys go."""
    db.executemany(
        f"INSERT OR REPLACE INTO meta SELECT {_NAME}, {_VALUE} || ' ' || ? FROM records "
        "WHERE model = ? AND key = ? AND kind < 2",
        ((reason, model, key) for key in keys),
    )


def forget_holes(db: sqlite3.Connection, model: int, keys: Iterable[bytes]) -> None:
    db.executemany("DELETE FROM meta WHERE name = ?", ((_name(model, key),) for key in keys))


def hole(db: sqlite3.Connection, model: int, key: bytes) -> Hole | None:
    """None: nothing was lost under the key, or nothing is known of it (the index was made anew since)."""
    row = db.execute("SELECT value FROM meta WHERE name = ?", (_name(model, key),)).fetchone()
    return _read(row[0]) if row else None


def holes_after(db: sqlite3.Connection, model: int, parent: bytes) -> set[bytes]:
    """Keys of what was lost right behind a page."""
    query = "SELECT name FROM meta WHERE name >= ? AND name < ? AND value LIKE ?"
    rows = db.execute(query, (f"hole {model} ", f"hole {model}!", parent.hex().upper() + " %")).fetchall()
    return {bytes.fromhex(name.split()[2]) for (name,) in rows}


def holes(db: sqlite3.Connection) -> dict[tuple[int, bytes], Hole]:
    """All, by model and key."""
    rows = db.execute("SELECT name, value FROM meta WHERE name >= 'hole ' AND name < 'hole!'").fetchall()
    names = (name.split() for name, _ in rows)
    return {(int(model), bytes.fromhex(key)): _read(row[1]) for (_, model, key), row in zip(names, rows, strict=True)}


def _name(model: int, key: bytes) -> str:
    return f"hole {model} {key.hex().upper()}"


def _read(value: str) -> Hole:
    parent, start, tokens, reason = value.split()
    return Hole(bytes.fromhex(parent), int(start), int(tokens), reason)
