"""Moving a conversation's state to another machine: one file, verified when it is written and when it is read.

The file has the format of a segment (FORMAT.md): the records of the conversation's pages in order, its tail, snapshots
of recurrent layers on its way, and last its head, which tells that the file is whole.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.errors import StoreError
from engine.kv.keys import Key, page_key, root_key, state_key
from engine.store.inspect import chain, heads_named, locate, whole_path
from engine.store.record import BLOCK, SHIFTED, Kind, RecordHeader, intact
from engine.store.recovery import head_of, head_record, model_of, model_words
from engine.store.rows import NewRecord, add, insert_records, put_head, read_head, set_scanned, transaction
from engine.store.segment import Found, SegmentWriter, scan

WITH_STATES = 2  # version of an export, in its head's layout id; one without snapshots is as it was in version 1


@dataclass(frozen=True)
class Transferred:
    """What was moved: `tokens` of the conversation, `records` in the file, of which `new` were not here before and
    `states` are snapshots of recurrent layers."""

    conversation: str
    fingerprint: str
    tokens: int
    records: int
    new: int
    states: int
    bytes: int


def export_state(db: sqlite3.Connection, segments: Path, conversation: str, target: Path) -> Transferred:
    """Writes the file. StoreError: no such conversation, a part of it is missing or damaged, or `target` exists.

    The beginning alone is not written: where it is taken in, the conversation would end there.
    """
    if target.exists():
        raise StoreError("The file exists already.", str(target), "Choose another name.")
    if not target.absolute().parent.is_dir():
        raise StoreError("There is no folder for the file.", str(target.absolute().parent), "Make it, or name another.")
    model, last, tail, tokens = heads_named(db, conversation)[0]
    keys = [Key(key) for key in chain(db, model, last, tail)]
    found = list(locate(db, segments, model, keys))
    reasons = {link.lost for link in whole_path(db, model, last, tail).values()} - {""}
    _check_whole([header for _, header in found], tokens, reasons)
    states = _states_on_the_way(db, segments, model, [header for _, header in found])
    found += states
    query = "SELECT fingerprint, name, layout FROM models WHERE id = ?"
    fingerprint, name, layout = db.execute(query, (model,)).fetchone()
    head = read_head(
        db.execute(
            "SELECT conversation, last, tail, tokens, saved, pinned FROM heads WHERE model = ? AND conversation = ?",
            (model, conversation),
        ).fetchone()
    )
    writer = SegmentWriter(target.absolute().parent)
    try:
        for (path, offset), header in found:
            writer.append(header, [_body(path, offset, header)])
        kind = WITH_STATES if states else 0
        writer.append(replace(head_record(head, fingerprint, model_words(name, layout)), layout_id=kind), [])
        writer.sync()
        _check(list(scan(writer.path, 0)), writer.path)
        writer.path.rename(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            writer.path.unlink()
        if isinstance(error, OSError):  # it would name the unfinished file
            why = f"{target}: {error.strerror}."
            raise StoreError("The state could not be written.", why, "Check the folder and the free space.") from error
        raise
    finally:
        writer.close()
    return Transferred(conversation, fingerprint.hex(), tokens, len(found), 0, len(states), target.stat().st_size)


def _check_whole(headers: list[RecordHeader], tokens: int, reasons: set[str]) -> None:
    """StoreError where tokens are missing between the records, or at the end."""
    missing, position = list[str](), 0
    for start, count in [*((header.start, len(header.ids)) for header in headers), (tokens, 0)]:
        if start > position:
            missing.append(f"{position:,} to {start - 1:,}")
        position = max(position, start + count)
    if missing:
        causes = {"damaged": "damaged, and taken out", "removed": "their file was removed"}
        why = "; ".join(causes[reason] for reason in sorted(reasons & causes.keys()))
        raise StoreError(
            "The state is not whole on disk.",
            f"Tokens {', '.join(missing)} are missing" + (f" ({why})." if why else "."),
            "Ask something in it: what is missing is read again and saved. Then export it.",
        )


def import_state(db: sqlite3.Connection, segments: Path, source: Path) -> Transferred:
    """Takes a file in; what is here already is not written again, and a conversation that went on here since stays
    where it is. StoreError: the file is not whole or not sound."""
    try:
        found = list(scan(source, 0))
    except OSError as error:
        raise StoreError("The file cannot be read.", f"{source}: {error.strerror}.") from error
    head = _check(found, source)
    with transaction(db):
        model = model_of(db, head)
    known = {(row[0], row[1]) for row in db.execute("SELECT key, grp FROM records WHERE model = ?", (model,))}
    fresh = [f for f in found if f.header.kind != Kind.HEAD and (f.header.key, f.header.group) not in known]
    writer = SegmentWriter(segments)
    try:
        offsets = [writer.append(record.header, [_body(source, record.offset, record.header)]) for record in fresh]
        placed = [NewRecord(f.header, writer.name, offset) for f, offset in zip(fresh, offsets, strict=True)]
        writer.append(replace(head, layout_id=0), [])
        writer.sync()
        with transaction(db):
            set_scanned(db, writer.name, writer.end)
            insert_records(db, model, placed)
            add(db, "written", head.record_bytes + sum(record.header.record_bytes for record in fresh))
            if not _went_on(db, model, head):
                put_head(db, model, head_of(head))
    finally:
        writer.close()
    size = source.stat().st_size
    states = sum(record.header.kind == Kind.STATE for record in found)
    counts = len(found) - 1, len(fresh), states
    return Transferred(head.conversation, head.fingerprint.hex(), head.start, *counts, size)


def _went_on(db: sqlite3.Connection, model: int, head: RecordHeader) -> bool:
    """Whether a later end of the conversation is known here."""
    query = "SELECT saved FROM heads WHERE model = ? AND conversation = ?"
    row = db.execute(query, (model, head.conversation)).fetchone()
    return row is not None and int(row[0] * 1e9) > head.serial


def _body(path: Path, offset: int, header: RecordHeader) -> bytes:
    with path.open("rb", buffering=0) as file:
        file.seek(offset + header.payload_offset)
        return file.read(header.extra_offset + header.extra_bytes - header.payload_offset)


def _check(found: list[Found], path: Path) -> RecordHeader:
    """The head of a sound file: every record intact, the chain of keys without a gap from the root to the end."""
    if not found:
        why = f"{path.name} does not begin with a page of saved state, or it was cut short before that one's end."
        raise StoreError("This is no exported conversation.", why, "'pagekeep cache export' writes one.")
    heads = [record.header for record in found if record.header.kind == Kind.HEAD]
    if len(heads) != 1 or found[-1].header.kind != Kind.HEAD:
        raise _unsound(path, "It has no end: it was cut short, or is no exported conversation.")
    head, position = heads[0], 0
    if head.layout_id not in (0, WITH_STATES):
        raise _unsound(path, "A newer Pagekeep has written it.")
    parent = root_key(head.fingerprint)
    borders, tokens = {parent: 0}, list[RecordHeader]()
    for key, headers in _by_key([record for record in found[:-1] if record.header.kind != Kind.STATE]):
        first = headers[0]
        pure = page_key(first.parent, first.ids, first.roles) == key
        if (first.start, first.parent) != (position, parent) or not (pure or first.flags & SHIFTED):
            raise _unsound(path, f"The pages do not follow each other at token {position:,}.")
        if any(header.fingerprint != head.fingerprint for header in headers):
            raise _unsound(path, "Its pages are of different models.")
        position, parent = position + len(first.ids), key
        borders[key] = position
        tokens.append(first)
    for record in found[:-1]:
        if not _intact(path, record):
            raise _unsound(path, f"The page at token {record.header.start:,} is damaged.")
    if position != head.start or parent not in (head.key, head.parent):
        raise _unsound(path, f"It holds {position:,} of {head.start:,} tokens.")
    for state in (record.header for record in found if record.header.kind == Kind.STATE):
        if state.fingerprint != head.fingerprint or not _belongs(state, borders, tokens):
            raise _unsound(path, f"The snapshot at token {state.start + len(state.ids):,} is of another conversation.")
    return head


def _belongs(state: RecordHeader, borders: dict[Key, int], pages: list[RecordHeader]) -> bool:
    """Whether a snapshot was taken on the way through these pages. `borders`: where what follows a key begins."""
    if borders.get(state.parent) != state.start:
        return False
    size, following = len(state.ids), next((page for page in pages if page.start == state.start), None)
    if following is None or state.key != state_key(page_key(state.parent, state.ids, state.roles)):
        return False
    return np.array_equal(state.ids, following.ids[:size]) and np.array_equal(state.roles, following.roles[:size])


def _states_on_the_way(
    db: sqlite3.Connection, segments: Path, model: int, pages: list[RecordHeader]
) -> list[tuple[tuple[Path, int], RecordHeader]]:
    borders = {page.parent: page.start for page in pages}
    query = "SELECT key FROM records WHERE model = ? AND parent = ? AND kind = 4 ORDER BY tokens"
    keys = [Key(row[0]) for parent in borders for row in db.execute(query, (model, parent)).fetchall()]
    found = locate(db, segments, model, keys)
    return [(place, header) for place, header in found if _belongs(header, borders, pages)]


def _by_key(found: list[Found]) -> Iterator[tuple[Key, list[RecordHeader]]]:
    groups: dict[Key, list[RecordHeader]] = {}
    for record in found:
        groups.setdefault(record.header.key, []).append(record.header)
    yield from groups.items()


def _intact(path: Path, record: Found) -> bool:
    header = record.header
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(descriptor, header.payload_bytes, record.offset + header.payload_offset)
    finally:
        os.close(descriptor)
    return header.record_bytes % BLOCK == 0 and intact(header, np.frombuffer(data, np.uint8))


def _unsound(path: Path, why: str) -> StoreError:
    return StoreError("The state cannot be moved.", f"{path.name}: {why}", "Export it again where it is whole.")
