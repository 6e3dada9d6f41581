"""Reading rows of the index: that of a key, and with it those that were written after it."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.kv.disk import DiskRecord, Location
from engine.kv.keys import Key
from engine.kv.layout import PageLayout
from engine.store.record import Kind
from engine.store.rows import Row

_COLUMNS = "key, parent, kind, start, tokens, numerics, segments.name, offset, length, payload, grp"
_RECORD = (
    f"SELECT {_COLUMNS} FROM records JOIN segments ON segments.id = segment WHERE model = ? AND key = ? AND kind < 2 "
    "ORDER BY grp"
)
# Of a layout with one layer group. Each column of each row costs: what is known is left out, and of the rows that are
# like those before in all but key, position and place these alone are asked for (100 rows: 80 us instead of 150).
_FOLLOWING = (
    "SELECT key, start, offset, kind, tokens, numerics, segment, length, payload FROM records WHERE +model = ? AND "
    "seq >= (SELECT min(seq) FROM records WHERE model = ? AND key = ?) AND kind < 2 ORDER BY seq LIMIT ?"
)
_ALIKE = (
    "WITH asked AS MATERIALIZED (SELECT min(seq) AS seq FROM records WHERE model = ? AND key = ?) SELECT key, start, "
    "offset FROM records WHERE seq BETWEEN (SELECT seq FROM asked) AND (SELECT seq FROM asked) + ? AND +model = ? AND "
    "kind = ? AND tokens = ? AND numerics = ? AND +segment = ? AND length = ? AND payload = ? ORDER BY seq"
)
_FOLLOWING_TOGETHER = (
    f"SELECT {_COLUMNS} FROM records CROSS JOIN segments ON segments.id = segment WHERE +model = ? AND seq >= "
    "(SELECT min(seq) FROM records WHERE model = ? AND key = ?) AND kind < 2 ORDER BY seq LIMIT ?"
)
# The same where the layer groups of a page may have been written at different times.
_FOLLOWING_APART = (
    f"SELECT {_COLUMNS} FROM records JOIN segments ON segments.id = segment WHERE model = ? AND key IN "
    "(SELECT key FROM records WHERE grp = 0 AND kind < 2 AND seq >= (SELECT min(seq) FROM records WHERE model = ? AND "
    "key = ?) ORDER BY seq LIMIT ?) ORDER BY key, grp"
)
_ROWS = 100  # each more that is not needed costs 2 us, each query 30


@dataclass(frozen=True)
class GroupCount:
    """Layer groups of the layout, and how many of the first ones a page must have; a tail must have all."""

    all: int
    needed: int

    @staticmethod
    def of(layout: PageLayout) -> GroupCount:
        """Where sliding windows are kept around anchors only, a page needs no more than the first group."""
        return GroupCount(len(layout.groups), 1 if layout.lookback else len(layout.groups))


class Following:
    """Of one model, over a connection that the caller holds."""

    def __init__(self, reader: sqlite3.Connection, model: int, groups: GroupCount) -> None:
        self._reader, self._model, self._groups = reader, model, groups
        self._names: dict[int, str] = {}  # of segments, by number
        self._alike: Row = ()  # kind, tokens, numerics, segment, length, payload of the row read last

    def one(self, key: Key) -> DiskRecord | None:
        """The record of a key; None if a layer group is missing that must be there."""
        return self._record(self._reader.execute(_RECORD, (self._model, key)).fetchall())

    def read(self, key: Key, parents: Mapping[bytes, bytes], known: dict[bytes, DiskRecord]) -> None:
        """Adds to `known` the record and those written after it: a prefix was mostly written in order. `parents`: of
        the keys that are there."""
        if self._groups.all > 1:
            self._read_groups(key, parents, known)
        elif not self._alike or not self._read_alike(key, parents, known):
            found = self._reader.execute(_FOLLOWING, (self._model, self._model, key, _ROWS)).fetchall()
            for alike, rows in itertools.groupby(found, key=lambda row: row[3:]):
                self._take_in([row[:3] for row in rows], alike, parents, known)

    def _read_groups(self, key: Key, parents: Mapping[bytes, bytes], known: dict[bytes, DiskRecord]) -> None:
        query = _FOLLOWING_TOGETHER if self._groups.needed == self._groups.all else _FOLLOWING_APART
        rows = self._reader.execute(query, (self._model, self._model, key, _ROWS)).fetchall()
        for found, group in itertools.groupby(rows, key=lambda row: row[0]):
            record = self._record(list(group))
            if record is not None and found in parents and found not in known:
                known[found] = record

    def _read_alike(self, key: Key, parents: Mapping[bytes, bytes], known: dict[bytes, DiskRecord]) -> bool:
        """Whether the row was like those read last."""
        values = self._model, key, _ROWS - 1, self._model, *self._alike
        self._take_in(self._reader.execute(_ALIKE, values).fetchall(), self._alike, parents, known)
        return key in known

    def _take_in(
        self, rows: Sequence[Row], alike: Row, parents: Mapping[bytes, bytes], known: dict[bytes, DiskRecord]
    ) -> None:
        """`rows`: key, start and offset of what agrees in all else. Column by column: quicker than row by row."""
        kind, tokens, numerics, segment, length, payload = alike
        if segment not in self._names:
            self._names = dict(self._reader.execute("SELECT id, name FROM segments"))
        name = self._names.get(segment)
        if name is None or not rows:
            return
        self._alike = alike
        make, same, tail = tuple.__new__, itertools.repeat, kind == Kind.TAIL
        keys, starts, offsets = zip(*rows, strict=True)
        places = zip(same(name), offsets, same(length), same(payload), strict=False)
        parts = zip(map(make, same(Location), places), strict=True)
        before = map(parents.get, keys)
        columns = zip(keys, before, same(tail), starts, same(tokens), same(numerics), parts, strict=False)
        found: dict[bytes, DiskRecord] = dict(zip(keys, map(make, same(DiskRecord), columns), strict=True))
        for key in [key for key in keys if key in known or key not in parents]:
            del found[key]
        known.update(found)

    def _record(self, rows: list[Row]) -> DiskRecord | None:
        """From the rows of a key's layer groups; None if one is missing that must be there."""
        parts = {row[-1]: Location(*row[6:-1]) for row in rows}
        tail = bool(rows) and rows[0][2] == Kind.TAIL
        if any(group not in parts for group in range(self._groups.all if tail else self._groups.needed)):
            return None
        key, parent, _, start, tokens, numerics = rows[0][:6]
        places = tuple(map(parts.get, range(self._groups.all)))
        return DiskRecord(Key(key), Key(parent), tail, start, tokens, numerics, places)
