"""One conversation's pages on disk, and where two conversations part: for `pagekeep cache show` and `diff`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from engine.errors import StoreError
from engine.kv.keys import Key, common_prefix
from engine.kv.layout import kv_types_in
from engine.store.holes import hole
from engine.store.record import SHIFTED, RecordHeader
from engine.store.segment import read_header


@dataclass(frozen=True)
class PageEntry:
    """A page or tail: `users` other conversations go through it too; `used` unix time of its last use.

    `approximate`: it was moved after a removal, or was computed on what was.
    """

    key: str
    tail: bool
    start: int
    tokens: int
    bytes: int
    segment: str
    offset: int
    numerics: str
    used: float
    users: int
    approximate: bool


@dataclass(frozen=True)
class StateEntry:
    """A conversation of one model: `tokens` of which `tokens_saved` are on disk without a gap; `kv_type` as in
    ConversationEntry."""

    conversation: str
    model: str
    fingerprint: str
    tokens: int
    tokens_saved: int
    bytes: int
    kv_type: str
    pages: tuple[PageEntry, ...]


@dataclass(frozen=True)
class StateDifference:
    """Where two conversations part.

    `position` -1: one is the beginning of the other, or nothing of them is comparable; token ids else. `first_tokens`,
    `second_tokens`: of all; `model`, `kv_type`: as which both were read.
    """

    shared_tokens: int
    shared_bytes: int
    position: int
    first_token: int
    second_token: int
    why: str
    first_tokens: int = 0
    second_tokens: int = 0
    model: str = ""
    kv_type: str = ""


def heads_named(db: sqlite3.Connection, conversation: str) -> list[tuple[int, bytes, bytes | None, int]]:
    """(model, last page, tail, tokens) of a conversation, last saved first. StoreError: there is none."""
    query = "SELECT model, last, tail, tokens FROM heads WHERE conversation = ? ORDER BY saved DESC"
    rows = db.execute(query, (conversation,)).fetchall()
    if not rows:
        raise StoreError(
            "There is no such conversation.", f"Nothing is kept under the name {conversation!r}.", "See 'cache ls'."
        )
    return rows


class Link(NamedTuple):
    """What is on disk under a key: `bytes` of all layer groups. `lost`: why it is not there any more (0 bytes)."""

    start: int
    tokens: int
    bytes: int
    lost: str = ""


def whole_path(db: sqlite3.Connection, model: int, last: bytes, tail: bytes | None) -> dict[bytes, Link]:
    """By key, from the first page to the tail, with what was lost of it (engine.store.holes).

    Where nothing is known of a missing page, what comes before it is not reached.
    """
    query = "SELECT max(parent), max(start), max(tokens), sum(length) FROM records WHERE model = ? AND key = ?"
    found: dict[bytes, Link] = {}
    for key in filter(None, (tail, last)):
        while key not in found:
            parent, *place = db.execute(query, (model, key)).fetchone()
            lost = hole(db, model, key) if parent is None else None
            if parent is None and lost is None:
                break
            found[key] = Link(lost.start, lost.tokens, 0, lost.reason) if lost else Link(*place)
            key = lost.parent if lost else parent
    return dict(reversed(found.items()))


def links(db: sqlite3.Connection, model: int, last: bytes, tail: bytes | None) -> dict[bytes, Link]:
    """What is on disk of `whole_path`."""
    return {key: link for key, link in whole_path(db, model, last, tail).items() if not link.lost}


def chain(db: sqlite3.Connection, model: int, last: bytes, tail: bytes | None) -> list[bytes]:
    """The keys of `links`."""
    return list(links(db, model, last, tail))


def without_gap(parts: Iterable[tuple[int, int]]) -> int:
    """How many tokens there are from the first on: `parts` (start, tokens) in order."""
    position = 0
    for start, tokens in parts:
        position = start + tokens if start == position else position
    return position


def show(db: sqlite3.Connection, segments: Path, conversation: str) -> StateEntry:
    """StoreError: there is no such conversation."""
    model, last, tail, tokens = heads_named(db, conversation)[0]
    others = db.execute("SELECT last, tail FROM heads WHERE model = ? AND conversation != ?", (model, conversation))
    used_by = [set(chain(db, model, *row)) for row in others.fetchall()]
    pages, moved = list[PageEntry](), False
    for key in chain(db, model, last, tail):
        moved = moved or is_moved(db, segments, model, key)  # what follows was computed on it
        pages.append(_entry(db, model, key, sum(key in keys for keys in used_by), moved))
    position = without_gap((page.start, page.tokens) for page in pages)
    query = "SELECT fingerprint, name, layout FROM models WHERE id = ?"
    fingerprint, name, layout = db.execute(query, (model,)).fetchone()
    size, kind = sum(page.bytes for page in pages), kv_types_in(layout)
    return StateEntry(conversation, name, fingerprint.hex(), tokens, position, size, kind, tuple(pages))


def diff(db: sqlite3.Connection, segments: Path, first: str, second: str) -> StateDifference:
    """StoreError: one of them is not there, or they are of different models."""
    pairs = ((a, b) for a in heads_named(db, first) for b in heads_named(db, second) if a[0] == b[0])
    one, two = next(pairs, (None, None))
    if one is None or two is None:
        why = "No model, with the same KV type, has read both."
        raise StoreError("The conversations cannot be compared.", why, "See 'cache ls' for what is kept of which.")
    paths = [links(db, model, last, tail) for model, last, tail, _ in (one, two)]
    shared = paths[0].keys() & paths[1].keys()  # a key stands for all tokens up to its end: of what was lost too
    size = sum(paths[0][key].bytes for key in shared)
    tokens = max((paths[0][key].start + paths[0][key].tokens for key in shared), default=0)
    following = [next((key for key in way if key not in shared), None) for way in paths]
    if first == second:
        found = StateDifference(one[3], size, -1, -1, -1, "They are the same.")
    elif any(key is None and head[3] > tokens for key, head in zip(following, (one, two), strict=True)):
        found = StateDifference(tokens, size, -1, -1, -1, "What follows is not on disk any more.")
    else:
        headers = [_header(db, segments, one[0], key) if key else None for key in following]
        found = _part(tokens, size, headers[0], headers[1])
    name, layout = db.execute("SELECT name, layout FROM models WHERE id = ?", (one[0],)).fetchone()
    return replace(found, first_tokens=one[3], second_tokens=two[3], model=name, kv_type=kv_types_in(layout))


def _part(tokens: int, size: int, one: RecordHeader | None, two: RecordHeader | None) -> StateDifference:
    if one is None or two is None:
        return StateDifference(tokens, size, -1, -1, -1, "One ends where the other goes on.")
    if one.start != tokens or two.start != tokens:
        return StateDifference(tokens, size, -1, -1, -1, "What follows is not on disk any more.")
    count = common_prefix(one.ids, one.roles, two.ids, two.roles)
    if count == min(len(one.ids), len(two.ids)):
        return StateDifference(tokens + count, size, -1, -1, -1, "One ends where the other goes on.")
    a, b = int(one.ids[count]), int(two.ids[count])
    why = "other tokens follow" if a != b else "the same token, once as prompt and once as answer"
    return StateDifference(tokens + count, size, tokens + count, a, b, why)


def is_moved(db: sqlite3.Connection, segments: Path, model: int, key: bytes) -> bool:
    """Whether the record says that it was moved after a removal, or follows one that was."""
    header = _header(db, segments, model, key)
    return header is not None and bool(header.flags & SHIFTED)


def _entry(db: sqlite3.Connection, model: int, key: bytes, users: int, approximate: bool) -> PageEntry:
    row = db.execute(
        "SELECT max(kind), max(start), max(tokens), sum(length), max(segments.name), min(offset), max(numerics), "
        "max(used) FROM records LEFT JOIN segments ON segments.id = segment WHERE model = ? AND key = ?",
        (model, key),
    ).fetchone()
    kind, start, tokens, size, segment, offset, numerics, used = row
    place = segment or "", offset
    return PageEntry(key.hex(), kind == 1, start, tokens, size, *place, numerics, used, users, approximate)


def _header(db: sqlite3.Connection, segments: Path, model: int, key: bytes) -> RecordHeader | None:
    for _, header in locate(db, segments, model, [Key(key)]):
        return header
    return None


def locate(
    db: sqlite3.Connection, segments: Path, model: int, keys: list[Key]
) -> Iterator[tuple[tuple[Path, int], RecordHeader]]:
    """Where the records of keys lie, with their headers, all layer groups; damaged ones are left out."""
    query = (
        "SELECT segments.name, offset FROM records JOIN segments ON segments.id = segment "
        "WHERE model = ? AND key = ? ORDER BY grp"
    )
    for key in keys:
        for name, offset in db.execute(query, (model, key)).fetchall():
            try:
                descriptor = os.open(segments / name, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                header = read_header(descriptor, offset)
            finally:
                os.close(descriptor)
            if header is not None and header.key == key:
                yield (segments / name, offset), header
