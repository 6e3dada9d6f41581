"""What the store takes on disk, and what of it is in use: for `pagekeep cache stat`."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from engine.kv.layout import kv_types_in
from engine.store.budget import live_bytes, segment_bytes
from engine.store.eviction import pinned_bytes
from engine.store.opening import INDEX_NAME
from engine.store.rows import counter


@dataclass(frozen=True)
class ModelShare:
    """What is kept of one model as it was run: `bytes` of `pages`, `tails` and `states` (of recurrent layers)."""

    model: str
    fingerprint: str
    kv_type: str
    pages: int
    tails: int
    states: int
    bytes: int


@dataclass(frozen=True)
class StoreStat:
    """`bytes_on_disk`: segments and index, that is `live_bytes` (records in use), `dead_bytes` (to be compacted) and
    `index_bytes`; `bytes_written`: over the store's life. `shares`: the records in use by model and KV type.
    `pages_checked`, `pages_wrong`: pages from disk that were computed again in idle time, over the store's life.
    `pinned_bytes`: of records that pinned conversations use, which are never evicted.
    """

    folder: str
    conversations: int
    pages: int
    tails: int
    models: int
    segments: int
    bytes_on_disk: int
    live_bytes: int
    dead_bytes: int
    index_bytes: int
    bytes_written: int
    shares: tuple[ModelShare, ...]
    pages_checked: int
    pages_wrong: int
    pinned_bytes: int


def account(db: sqlite3.Connection, folder: Path, segments_folder: Path) -> StoreStat:
    def one(query: str) -> int:
        return int(db.execute(query).fetchone()[0])

    count = dict(db.execute("SELECT kind, count(DISTINCT key) FROM records GROUP BY kind").fetchall())
    index = sum(path.stat().st_size for path in folder.glob(INDEX_NAME + "*"))
    live, segments = live_bytes(db), segment_bytes(segments_folder)  # others may save in between
    return StoreStat(
        str(folder),
        conversations=one("SELECT count(DISTINCT conversation) FROM heads"),
        pages=count.get(0, 0),
        tails=count.get(1, 0),
        models=one("SELECT count(DISTINCT model) FROM records"),
        segments=one("SELECT count(*) FROM segments"),
        bytes_on_disk=segments + index,
        live_bytes=live,
        dead_bytes=max(0, segments - live),
        index_bytes=index,
        bytes_written=counter(db, "written"),
        shares=_shares(db),
        pages_checked=counter(db, "checked"),
        pages_wrong=counter(db, "wrong"),
        pinned_bytes=pinned_bytes(db),
    )


def _shares(db: sqlite3.Connection) -> tuple[ModelShare, ...]:
    query = (
        "SELECT name, fingerprint, layout, count(DISTINCT CASE WHEN kind = 0 THEN key END), count(DISTINCT CASE WHEN "
        "kind = 1 THEN key END), sum(kind = 4), sum(length) AS size FROM records JOIN models ON models.id = model "
        "GROUP BY model ORDER BY size DESC"
    )
    rows = db.execute(query).fetchall()
    return tuple(ModelShare(row[0], row[1].hex(), kv_types_in(row[2]), *row[3:]) for row in rows)
