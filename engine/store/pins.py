"""What the reader has pinned, in a file of its own: it outlives the index, which can be made anew from the segments."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.kv.disk import Head
from engine.kv.notices import Notice
from engine.store.locks import private_file
from engine.store.rows import put_head, transaction

FILE = "pins.json"
Pin = tuple[str, str]  # fingerprint of the model (hex), conversation


def read_pins(folder: Path) -> set[Pin] | None:
    """None: there is no such file, or it cannot be read."""
    try:
        return {(str(model), str(conversation)) for model, conversation in json.loads((folder / FILE).read_text())}
    except (OSError, ValueError, TypeError):
        return None


def set_pins(db: sqlite3.Connection, folder: Path, conversation: str, pinned: bool, model: int | None = None) -> int:
    """Pins what is kept of a conversation, of one model or of all; returns of how many. Within a transaction, which
    keeps other processes out."""
    query = "SELECT model FROM heads WHERE conversation = ?"
    models = [row[0] for row in db.execute(query, (conversation,)).fetchall() if model in (None, row[0])]
    names = [(pinned, one, conversation) for one in models]
    db.executemany("UPDATE heads SET pinned = ? WHERE model = ? AND conversation = ?", names)
    _note(db, folder, conversation, models, pinned)
    return len(models)


def forget_pins(db: sqlite3.Connection, folder: Path, conversation: str, models: Iterable[int]) -> None:
    """Nothing is kept of it any more. Within a transaction."""
    _note(db, folder, conversation, models, False)


def _note(db: sqlite3.Connection, folder: Path, conversation: str, models: Iterable[int], pinned: bool) -> None:
    names = {row[0]: row[1].hex() for row in db.execute("SELECT id, fingerprint FROM models").fetchall()}
    changed = {(names[model], conversation) for model in models}
    before = read_pins(folder)
    known = pins_in(db) if before is None else before
    after = known | changed if pinned else known - changed
    if after != (before or set()):
        _write(folder, after)


def put_heads(db: sqlite3.Connection, folder: Path, model: int, heads: Iterable[Head]) -> None:
    """Moves conversations' ends; where one is new here (all was removed under us) it is pinned if the file says so.
    Within a transaction."""
    known = {row[0] for row in db.execute("SELECT conversation FROM heads WHERE model = ?", (model,))}
    moved = list(heads)
    for head in moved:
        put_head(db, model, head)
    if {head.conversation for head in moved} - known:
        take_pins(db, folder)


def pins_in(db: sqlite3.Connection) -> set[Pin]:
    """What an index has pinned, its own file removed or not."""
    return {name for name, row in _heads(db).items() if row[1]}


def bring_back_pins(
    maintain: Callable[[Callable[[sqlite3.Connection], object]], None], folder: Path, pins: set[Pin]
) -> list[Notice]:
    """Writes again what a process knew whose folder was removed under it; what to tell where that failed."""
    try:
        maintain(lambda db: _pin_again(db, folder, pins))
    except (sqlite3.Error, OSError) as error:
        why = f"Their folder was removed, and pinning them again failed: {error}."
        return [Notice("Pinned conversations may not be pinned any more.", why, "Pin them again.")]
    return []


def _pin_again(db: sqlite3.Connection, folder: Path, pins: set[Pin]) -> None:
    if pins and read_pins(folder) is None:
        _write(folder, pins)
        with transaction(db):
            take_pins(db, folder)


def take_pins(db: sqlite3.Connection, folder: Path) -> None:
    """Pins again what the file names. Within a transaction."""
    heads, pins = _heads(db), read_pins(folder)
    if pins is None:  # an index from before there was one is asked instead
        pins = pins_in(db)
        if pins:
            _write(folder, pins)
    unpinned = [(heads[name][0], name[1]) for name in pins & heads.keys() if not heads[name][1]]
    db.executemany("UPDATE heads SET pinned = 1 WHERE model = ? AND conversation = ?", unpinned)


def _heads(db: sqlite3.Connection) -> dict[Pin, tuple[int, bool]]:
    query = "SELECT fingerprint, conversation, model, pinned FROM heads JOIN models ON models.id = model"
    return {(row[0].hex(), row[1]): (row[2], bool(row[3])) for row in db.execute(query).fetchall()}


def _write(folder: Path, pins: set[Pin]) -> None:
    """A full disk does not stand in the way."""
    fresh = folder / f"{FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with open(private_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
            json.dump(sorted(pins), file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / FILE)
