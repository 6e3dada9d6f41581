"""Keeping the store within its budget: has leaves evicted, unlinks dead segments, compacts mostly dead ones."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.store.eviction import evict
from engine.store.locks import is_locked
from engine.store.record import BLOCK, Kind, RecordHeader
from engine.store.recovery import SUFFIX
from engine.store.rows import drop_segment, move_record, set_scanned, transaction
from engine.store.segment import SegmentWriter, read_header, scan

MOSTLY_DEAD = 0.5  # a segment of which less than this is alive is rewritten
SMALL_BYTES = 16 << 20  # every run of the command line leaves a segment: small ones are joined
MANY_SMALL = 4
SEGMENT_BYTES = 256 << 20
_ROUNDS = 4


@dataclass(frozen=True)
class Collected:
    """What a collection freed: records evicted, segments unlinked, segments rewritten, bytes on disk before and
    after.
    """

    evicted: int = 0
    unlinked: int = 0
    compacted: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


@dataclass(frozen=True)
class DiskStat:
    """`bytes`: all segments of the folder, other models' included; `records`, `conversations`: of this model."""

    bytes: int
    budget_bytes: int
    records: int
    conversations: int


def segment_bytes(folder: Path) -> int:
    """Bytes of all segments, dead records included; 0 where the folder was removed."""
    total = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                with contextlib.suppress(FileNotFoundError):
                    total += entry.stat().st_size
    return total


def collect(
    db: sqlite3.Connection,
    folder: Path,
    budget: int,
    keep: tuple[int, bytes] | None = None,
    reason: str = "evicted",
) -> Collected:
    """Brings the segments to `budget` bytes if it can; the rest as in `evict`. Call under the maintenance lock."""
    before = segment_bytes(folder)
    unlinked, evicted, compacted, target = unlink_dead(db, folder), 0, 0, budget
    for _ in range(_ROUNDS):
        evicted += evict(db, live_bytes(db) - target, keep, reason)
        unlinked += unlink_dead(db, folder)
        compacted += compact(db, folder, budget)
        over = segment_bytes(folder) - budget
        if over <= 0 or target <= 0:
            break
        target -= over
    return Collected(evicted, unlinked, compacted, before, segment_bytes(folder))


def live_bytes(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(sum(length), 0) FROM records").fetchone()[0])


def unlink_dead(db: sqlite3.Connection, folder: Path) -> int:
    """Unlinks segments without live records that nobody writes to; returns how many.

    What they say of where conversations end is copied, so that it outlives the index; one that says no more stays.
    """
    query = "SELECT id, name FROM segments WHERE id NOT IN (SELECT DISTINCT segment FROM records)"
    idle = [row for row in db.execute(query).fetchall() if not is_locked(folder / row[1])]
    kept = [row for row in idle if _says_nothing_else(db, folder / row[1])]
    dead = idle if len(kept) > 1 else [row for row in idle if row not in kept]
    keep_heads(db, folder, [name for _, name in dead])
    with transaction(db):
        for number, name in dead:
            (folder / name).unlink(missing_ok=True)
            db.execute("DELETE FROM segments WHERE id = ?", (number,))
    return len(dead)


def keep_heads(db: sqlite3.Connection, folder: Path, dead: list[str], target: SegmentWriter | None = None) -> None:
    """Copies from `dead` segments what still says where a conversation ends; to `target` if given."""
    headers = [header for name in dead for header in _current_heads(db, folder / name)]
    if not headers:
        return
    into = target or SegmentWriter(folder)
    for header in headers:
        into.append(header, [])
    into.sync()
    with transaction(db):
        set_scanned(db, into.name, into.end)
    if target is None:
        into.close()


def _current_heads(db: sqlite3.Connection, path: Path) -> Iterator[RecordHeader]:
    """HEAD records whose conversation still ends there, and whose pages are not all gone.

    And what says that a conversation was forgotten, while a segment from before that may hold an end of it.
    """
    query = (
        "SELECT heads.saved FROM heads JOIN models ON models.id = heads.model WHERE fingerprint = ? AND "
        "conversation = ? AND EXISTS (SELECT 1 FROM records WHERE records.model = heads.model AND "
        "(records.key = heads.last OR records.key = heads.tail))"
    )
    for found in scan(path, 0) if path.exists() else ():
        header = found.header
        if header.kind == Kind.HEAD:
            row = db.execute(query, (header.fingerprint, header.conversation)).fetchone()
            if row and int(row[0] * 1e9) == header.serial:
                yield header
        elif header.kind == Kind.FORGET and _has_older_neighbour(path, header.serial):
            yield header


def _has_older_neighbour(path: Path, serial: int) -> bool:
    others = (other for other in path.parent.iterdir() if other.suffix == SUFFIX and other != path)
    return any(_born(other) <= serial for other in others)


def _born(segment: Path) -> int:
    """When it was begun: nanoseconds since 1970."""
    try:
        return int(segment.name.partition("-")[0], 16) * 1000
    except ValueError:
        return 0


def _says_nothing_else(db: sqlite3.Connection, path: Path) -> bool:
    kept = len(list(_current_heads(db, path)))
    return bool(kept) and path.stat().st_size <= BLOCK * (kept + 1)


@dataclass(frozen=True)
class _Segment:
    number: int
    path: Path
    size: int
    alive: int

    @property
    def alive_part(self) -> float:
        return self.alive / max(1, self.size - BLOCK)


def compact(db: sqlite3.Connection, folder: Path, budget: int) -> int:
    """Moves the live records out of mostly dead segments, and out of small ones where there are many.

    While the folder is above `budget` bytes, out of others with dead bytes too, deadest first. Returns segments
    rewritten.
    """
    rewritten, total, target = 0, segment_bytes(folder), None
    try:
        for segment in _candidates(db, folder):
            dead = segment.size - segment.alive
            if segment.alive_part >= MOSTLY_DEAD and segment.size >= SMALL_BYTES and total <= budget:
                continue
            if target is None or target.end > SEGMENT_BYTES:
                target = _next_target(folder, target)
            _move(db, segment, target)
            rewritten, total = rewritten + 1, total - dead
    finally:
        if target:
            target.close()
    return rewritten


def _candidates(db: sqlite3.Connection, folder: Path) -> list[_Segment]:
    """Segments that may be rewritten, deadest first; whole small ones only if there are several."""
    query = "SELECT segment, name, sum(length) FROM records JOIN segments ON segments.id = segment GROUP BY segment"
    rows = [(number, folder / name, alive) for number, name, alive in db.execute(query).fetchall()]
    found = [_Segment(n, path, path.stat().st_size, alive) for n, path, alive in rows if path.exists()]
    free = sorted((s for s in found if not is_locked(s.path)), key=lambda segment: segment.alive_part)
    many = sum(segment.size < SMALL_BYTES for segment in free) >= MANY_SMALL
    return [s for s in free if (many and s.size < SMALL_BYTES) or (s.alive_part < 1 and _would_shrink(db, s))]


def _would_shrink(db: sqlite3.Connection, segment: _Segment) -> bool:
    """What says where conversations end is no record in use, but it would be copied: that alone frees nothing."""
    kept = sum(1 for _ in _current_heads(db, segment.path))
    return segment.size > segment.alive + BLOCK * (1 + kept)


def _next_target(folder: Path, full: SegmentWriter | None) -> SegmentWriter:
    if full:
        full.close()
    return SegmentWriter(folder)


def _move(db: sqlite3.Connection, segment: _Segment, target: SegmentWriter) -> None:
    query = "SELECT seq, offset FROM records WHERE segment = ? ORDER BY offset"
    rows = db.execute(query, (segment.number,)).fetchall()
    source = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        moved = [(seq, _copy(source, offset, target)) for seq, offset in rows]
    finally:
        os.close(source)
    target.sync()
    keep_heads(db, segment.path.parent, [segment.path.name], target)
    with transaction(db):
        set_scanned(db, target.name, target.end)
        _repoint(db, segment.number, target.name, moved)
    segment.path.unlink(missing_ok=True)


def _copy(source: int, offset: int, target: SegmentWriter) -> int | None:
    """Copies one record; None if its header is damaged."""
    header = read_header(source, offset)
    if header is None:
        return None
    at = header.payload_offset
    body = os.pread(source, header.record_bytes - at, offset + at)
    return target.append(header, [body]) if len(body) == header.record_bytes - at else None


def _repoint(db: sqlite3.Connection, old: int, segment: str, moved: list[tuple[int, int | None]]) -> None:
    new = db.execute("SELECT id FROM segments WHERE name = ?", (segment,)).fetchone()[0]
    for seq, offset in moved:
        if offset is not None:
            move_record(db, seq, new, offset)
    name = db.execute("SELECT name FROM segments WHERE id = ?", (old,)).fetchone()[0]
    drop_segment(db, name, "damaged")
