"""Opening a store: makes the index agree with the segments, whatever happened before."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.kv.disk import Head
from engine.kv.keys import Key
from engine.kv.log import KvLog
from engine.kv.notices import Notice
from engine.store.locks import is_locked
from engine.store.loss import files_gone
from engine.store.pins import take_pins
from engine.store.record import BLOCK, NO_KEY, Kind, RecordHeader
from engine.store.rows import (
    NewRecord,
    drop_segment,
    insert_records,
    model_id,
    put_head,
    set_scanned,
    tokens_in,
    transaction,
)
from engine.store.schema import connect
from engine.store.segment import Found, SegmentWriter, scan

SUFFIX = ".seg"
_MARK = "rebuild-index"  # a file: somebody met damage in the index while it was in use


@dataclass(frozen=True)
class Recovered:
    """What opening found: records added from segments, segments that are gone and the tokens that lay in them, why the
    index had to be made anew."""

    records: int = 0
    lost_segments: int = 0
    rebuilt: str = ""
    lost_tokens: int = 0

    def note(self, log: KvLog) -> None:
        """An index that was made anew is an entry of the operation log."""
        if self.rebuilt:
            log.add("warn", "rebuild", index_made_anew=True, records=self.records, reason=self.rebuilt)
            log.flush()

    def notices(self, gone: bool = True) -> list[Notice]:
        """Of an index that was made anew, and, if `gone`, of files that are gone."""
        anew = Notice(
            f"The list of saved conversations was {self.rebuilt}.",
            f"It was made anew from the saved pages: {self.records:,} were found.",
            "Nothing needs to be done.",
        )
        return [anew] * bool(self.rebuilt) + [files_gone(self.lost_tokens)] * (gone and self.lost_tokens > 0)


def repair(index: Path, segments: Path, anew: bool = False) -> Recovered:
    """Makes index and segments agree; a damaged index (or any, if `anew`) is set aside and made from the segments."""
    marked = index.with_name(_MARK)
    anew = anew or marked.exists()
    try:
        if anew:
            marked.unlink(missing_ok=True)
            raise sqlite3.DatabaseError("damaged")
        return reconcile(index, segments)
    except sqlite3.Error as error:
        if is_full(error):
            return Recovered()  # what the index knows can still be read
        if not (anew or is_damage(error)):
            raise
        _set_aside(index)
        return replace(reconcile(index, segments), rebuilt="damaged")


def mark_damaged(folder: Path) -> None:
    """Whoever opens the store next makes the index anew: damage may lie where opening does not look."""
    with contextlib.suppress(OSError):
        (folder / _MARK).touch(mode=0o600)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether it says that the database is broken or not ours; not that it is busy or the disk is full."""
    if isinstance(error, sqlite3.OperationalError):
        return any(word in str(error) for word in ("no such", "has no column", "malformed", "already exists"))
    ours = sqlite3.NotSupportedError, sqlite3.ProgrammingError  # the latter: it was closed meanwhile
    return isinstance(error, sqlite3.DatabaseError) and not isinstance(error, ours)


def is_full(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "full" in str(error)


def _set_aside(index: Path) -> None:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for path in (index, index.with_name(index.name + "-wal"), index.with_name(index.name + "-shm")):
        if path.exists():
            path.rename(path.with_name(f"damaged-{stamp}-{path.name}"))


@dataclass
class _Taken:
    """What was met so far: records that forget a conversation; of those with a key when the `latest` was written."""

    latest: bool
    forgotten: list[RecordHeader] = field(default_factory=list)
    _serials: dict[tuple[int, bytes, int], int] = field(default_factory=dict)

    def is_later(self, name: tuple[int, bytes, int], serial: int) -> bool:
        """Whether it takes the place of another record of that model, key and group."""
        before = self._serials.get(name)
        if self.latest and (before is None or serial > before):
            self._serials[name] = serial
        return before is not None and serial > before


def reconcile(index: Path, segments: Path) -> Recovered:
    """Adds records of segments whose writer is gone and that the index does not know; drops rows of lost segments.

    In an index that knows nothing yet the later record of a key counts: the one before may be damaged.
    """
    missing = not index.exists()
    connection = connect(index)
    try:
        known: dict[str, int] = dict(connection.execute("SELECT name, scanned FROM segments"))
        files = {path.name: path for path in segments.iterdir() if path.suffix == SUFFIX}
        lost = [name for name in known if name not in files]
        lost_tokens = _drop_segments(connection, lost)
        taken = _Taken(latest=not known)
        added = sum(
            _take_in(connection, path, known.get(name, 0), taken)
            for name, path in sorted(files.items())
            if path.stat().st_size > known.get(name, 0) and not is_locked(path)
        )
        _forget(connection, taken.forgotten)
        with transaction(connection) as db:
            take_pins(db, index.parent)
        return Recovered(added, len(lost), "missing" if missing and added else "", lost_tokens)
    finally:
        connection.close()


def _drop_segments(connection: sqlite3.Connection, names: list[str]) -> int:
    """Returns the tokens that lay in them."""
    tokens = 0
    if names:
        with transaction(connection) as db:
            for name in names:
                tokens += tokens_in(db, name)
                drop_segment(db, name, "removed")
    return tokens


def _take_in(connection: sqlite3.Connection, path: Path, start: int, taken: _Taken) -> int:
    """Rows for what lies behind `start` of a segment nobody writes any more."""
    size = path.stat().st_size
    found = list(scan(path, start))  # records vouch for themselves, whatever became of the file's first block
    with transaction(connection) as db:
        set_scanned(db, path.name, max(size, BLOCK))
        for record in found:
            _take_record(db, path.name, record, taken)
    return len(found)


def _take_record(db: sqlite3.Connection, segment: str, found: Found, taken: _Taken) -> None:
    header = found.header
    model = model_of(db, header)
    if header.kind in (Kind.PAGE, Kind.TAIL, Kind.STATE):
        name = model, header.key, header.group
        if taken.is_later(name, header.serial):
            db.execute("DELETE FROM records WHERE model = ? AND key = ? AND grp = ?", name)
        insert_records(db, model, [NewRecord(header, segment, found.offset)])
    elif header.kind == Kind.HEAD and _is_newer(db, model, header):
        put_head(db, model, head_of(header))
    elif header.kind == Kind.FORGET:
        taken.forgotten.append(header)


def _forget(connection: sqlite3.Connection, headers: list[RecordHeader]) -> None:
    """After all segments: the head that was forgotten may lie in a later one."""
    with transaction(connection) as db:
        for header in headers:
            query = (
                "DELETE FROM heads WHERE conversation = ? AND saved <= ? AND model = "
                "(SELECT id FROM models WHERE fingerprint = ?)"
            )
            db.execute(query, (header.conversation, header.serial / 1e9, header.fingerprint))


def _is_newer(db: sqlite3.Connection, model: int, header: RecordHeader) -> bool:
    query = "SELECT saved FROM heads WHERE model = ? AND conversation = ?"
    row = db.execute(query, (model, header.conversation)).fetchone()
    return row is None or row[0] <= header.serial / 1e9


def say_forgotten(db: sqlite3.Connection, segments: Path, conversation: str, fingerprints: Iterable[bytes]) -> None:
    """A record for whoever makes the index anew. A full disk does not stand in the way of forgetting."""
    with contextlib.suppress(OSError):
        segment = SegmentWriter(segments)
        try:
            for fingerprint in fingerprints:
                segment.append(forget_record(conversation, fingerprint), [])
            segment.sync()
            with transaction(db):
                set_scanned(db, segment.name, segment.end)
        finally:
            segment.close()


def forget_record(conversation: str, fingerprint: bytes) -> RecordHeader:
    return RecordHeader(Kind.FORGET, fingerprint, conversation=conversation, serial=time.time_ns())


def head_of(header: RecordHeader) -> Head:
    """The head that a HEAD record stands for."""
    tail = None if header.parent == NO_KEY else header.parent
    return Head(header.conversation, header.key, tail, header.start, header.serial / 1e9)


def model_words(name: str, layout: str) -> str:
    """What heads tell people of the model: its name, and the layout as far as it tells the KV types."""
    return f"{name}\n{layout.split(';')[0]}"


def model_of(db: sqlite3.Connection, header: RecordHeader) -> int:
    """The row of a record's model; a head tells its name and KV types where nobody did before."""
    name, _, layout = header.numerics.partition("\n") if header.kind == Kind.HEAD else ("", "", "")
    query = "SELECT 1 FROM models WHERE fingerprint = ? AND name != ''"
    known = not name or db.execute(query, (header.fingerprint,)).fetchone()
    return model_id(db, header.fingerprint) if known else model_id(db, header.fingerprint, name, layout)


def head_record(head: Head, fingerprint: bytes, model: str = "") -> RecordHeader:
    """`model`: as `model_words` says it."""
    return RecordHeader(
        Kind.HEAD, fingerprint, head.last, Key(head.tail or NO_KEY), head.tokens, numerics=model,
        conversation=head.conversation, serial=int(head.saved * 1e9),
    )  # fmt: skip
