"""Which records go when the disk budget is reached: leaves of the page tree, worth least first."""

from __future__ import annotations

import heapq
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from engine.kv.keys import Key
from engine.store.holes import forget_holes, hole, holes
from engine.store.rows import costs, remove_records, transaction

_FRESH_SECONDS = 600.0


class _Entry(NamedTuple):
    """A page or tail with all its layer groups; `used`: unix time, the latest of it and of what followed it.

    `length` 0: it was lost (engine.store.holes), and holds the place between what it followed and what follows it.
    """

    used: float
    model: int
    key: bytes
    parent: bytes
    length: int
    start: int
    tokens: int


def evict(
    db: sqlite3.Connection, bytes_wanted: int, keep: tuple[int, bytes] | None = None, reason: str = "evicted"
) -> int:
    """Removes leaves of the page tree, worth least first, until that many bytes are free; returns records removed.

    `keep`: (model, key) of what a record that is about to be written follows: it is no leaf, nor is what is before it.
    """
    removed: dict[int, list[Key]] = {}
    holes_left: list[tuple[int, bytes]] = []  # behind which nothing is any more
    parents: dict[tuple[int, bytes], bytes] = {}
    lifted: dict[tuple[int, bytes], float] = {}
    for entry in _leaves(db, keep) if bytes_wanted > 0 else ():
        if bytes_wanted <= 0:
            break
        if entry.length:
            removed.setdefault(entry.model, []).append(Key(entry.key))
        else:
            holes_left.append((entry.model, entry.key))
        parents[entry.model, entry.key] = entry.parent
        lifted[entry.model, entry.parent] = max(entry.used, lifted.get((entry.model, entry.parent), 0.0))
        bytes_wanted -= entry.length
    with transaction(db):
        for model, keys in removed.items():
            remove_records(db, model, keys, reason)
        for model, key in holes_left:
            if hole(db, model, key) is None:  # it was computed again meanwhile: heads may end there
                del parents[model, key]
            forget_holes(db, model, [key])
        _shorten_heads(db, parents)
        _lift(db, lifted)
    return sum(map(len, removed.values()))


def _lift(db: sqlite3.Connection, used: dict[tuple[int, bytes], float]) -> None:
    """A page was used whenever one after it was: only the last page of a conversation is touched."""
    db.executemany(
        "UPDATE records SET used = max(used, ?) WHERE model = ? AND key = ?",
        ((when, model, key) for (model, key), when in used.items()),
    )


def _leaves(db: sqlite3.Connection, keep: tuple[int, bytes] | None) -> Iterator[_Entry]:
    """Entries in the order in which they may go: leaves first, worth least first, nothing pinned."""
    entries = _entries(db)
    children = Counter((entry.model, entry.parent) for entry in entries.values())
    pinned, worth = _pinned(db, entries), _worth(db)
    if keep:
        _add_path(pinned, entries, keep)
    heap = [(worth(entry), entry) for name, entry in entries.items() if not children[name] and name not in pinned]
    heapq.heapify(heap)
    while heap:
        entry = heapq.heappop(heap)[1]
        yield entry
        above = (entry.model, entry.parent)
        children[above] -= 1
        if above in entries and above not in pinned:
            entries[above] = entries[above]._replace(used=max(entries[above].used, entry.used))
            if not children[above]:
                heapq.heappush(heap, (worth(entries[above]), entries[above]))


def _entries(db: sqlite3.Connection) -> dict[tuple[int, bytes], _Entry]:
    columns = "max(used), model, key, parent, sum(length), max(start), max(tokens)"
    rows = db.execute(f"SELECT {columns} FROM records GROUP BY model, key")
    lost = {name: _Entry(0.0, *name, gap.parent, 0, gap.start, gap.tokens) for name, gap in holes(db).items()}
    return {**lost, **{(row[1], row[2]): _Entry(*row) for row in rows}}


def pinned_bytes(db: sqlite3.Connection) -> int:
    """Of the records that pinned conversations use."""
    if not db.execute("SELECT 1 FROM heads WHERE pinned LIMIT 1").fetchone():
        return 0
    entries = _entries(db)
    return sum(entries[name].length for name in _pinned(db, entries) if name in entries)


def _worth(db: sqlite3.Connection) -> Callable[[_Entry], tuple[bool, float]]:
    """Seconds of computing that an entry saves, times its chance of use, per byte.

    What was used a moment ago belongs to what is being read or written: it goes last, least recently used first.
    """
    now = time.time()
    by_model = {row[0]: costs(db, row[0]) for row in db.execute("SELECT id FROM models").fetchall()}
    ends = Counter[tuple[int, bytes]]()
    for model, last, tail in db.execute("SELECT model, last, tail FROM heads").fetchall():
        ends.update({(model, tail or last): 1})

    def worth(entry: _Entry) -> tuple[bool, float]:
        if not entry.length:
            return False, -1.0
        age, uses = abs(now - entry.used), ends[entry.model, entry.key]  # below 0: the clock was wrong, then or now
        if age < _FRESH_SECONDS:
            return True, entry.used
        return False, by_model[entry.model].disk_value(entry.start, entry.tokens, entry.length, age, uses)

    return worth


def _pinned(db: sqlite3.Connection, entries: dict[tuple[int, bytes], _Entry]) -> set[tuple[int, bytes]]:
    pinned: set[tuple[int, bytes]] = set()
    for model, last, tail in db.execute("SELECT model, last, tail FROM heads WHERE pinned").fetchall():
        pinned.add((model, tail))
        _add_path(pinned, entries, (model, last))
    return pinned


def _add_path(
    pinned: set[tuple[int, bytes]], entries: dict[tuple[int, bytes], _Entry], name: tuple[int, bytes]
) -> None:
    while name in entries and name not in pinned:
        pinned.add(name)
        name = (name[0], entries[name].parent)


def _shorten_heads(db: sqlite3.Connection, parents: dict[tuple[int, bytes], bytes]) -> None:
    """Heads end at the last page that is left of them; their number of tokens stays: the conversation has its text.

    `parents`: (model, key) of what was removed -> the key before it.
    """
    for model, conversation, last, tail in db.execute("SELECT model, conversation, last, tail FROM heads").fetchall():
        end, kept = last, None if (model, tail) in parents else tail
        while (model, end) in parents:
            end = parents[model, end]
        if (end, kept) != (last, tail):
            values = (end, kept, model, conversation)
            db.execute("UPDATE heads SET last = ?, tail = ? WHERE model = ? AND conversation = ?", values)
