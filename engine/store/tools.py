"""Looking at and tidying a store from the command line: no model and no engine needed, whatever models it holds."""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from engine.errors import StoreError
from engine.kv.keys import Key
from engine.store.budget import Collected, collect, live_bytes, segment_bytes
from engine.store.inspect import StateDifference, StateEntry, diff, show
from engine.store.locks import maintenance
from engine.store.record import RecordHeader, intact
from engine.store.recovery import is_damage, say_forgotten
from engine.store.rows import counter, forget_head, remove_records, transaction
from engine.store.schema import connect, connect_read_only
from engine.store.segment import read_header
from engine.store.store import INDEX_NAME, SEGMENTS_NAME, prepare
from engine.store.transfer import Transferred, export_state, import_state

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ConversationEntry:
    """One conversation of one model: `bytes` on disk, of which `shared_bytes` are used by others too; `saved` unix
    time.

    `tokens_saved`: how many of its `tokens` are on disk without a gap.
    """

    conversation: str
    model: str
    fingerprint: str
    tokens: int
    tokens_saved: int
    bytes: int
    shared_bytes: int
    saved: float
    pinned: bool


@dataclass(frozen=True)
class StoreStat:
    """`bytes_on_disk`: segments and index; `live_bytes`: records in use; `bytes_written`: over the store's life."""

    folder: str
    conversations: int
    pages: int
    tails: int
    models: int
    segments: int
    bytes_on_disk: int
    live_bytes: int
    index_bytes: int
    bytes_written: int


@dataclass(frozen=True)
class Damage:
    """A record that cannot be used, and why."""

    segment: str
    offset: int
    key: str
    start: int
    tokens: int
    why: str


@dataclass(frozen=True)
class VerifyReport:
    records: int
    bytes: int
    damaged: tuple[Damage, ...]


def _healing(work: Callable[Concatenate[StoreTools, P], T]) -> Callable[Concatenate[StoreTools, P], T]:
    """Damage in the index that shows only now: it is made anew from the segments, and the work is done again."""

    @functools.wraps(work)
    def healed(self: StoreTools, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(self, *args, **kwargs)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise
            self.rebuild()
            return work(self, *args, **kwargs)

    return healed


class StoreTools:
    """Opens the index of `folder`. StoreError: there is no usable store. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._segments = self.folder / SEGMENTS_NAME
        try:
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                "The saved conversations cannot be read.", f"{folder}: {error}.", "Check the folder's permissions."
            ) from error

    def _open(self) -> sqlite3.Connection:
        """Of a folder that cannot be written the index is read as it is."""
        index = self.folder / INDEX_NAME
        if index.is_file() and not (os.access(index, os.W_OK) and os.access(self.folder, os.W_OK)):
            return connect_read_only(index)
        prepare(self.folder)
        return connect(index)

    def __enter__(self) -> StoreTools:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def rebuild(self) -> None:
        """Sets the index aside and makes it anew from the segments."""
        self._db.close()
        prepare(self.folder, anew=True)
        self._db = connect(self.folder / INDEX_NAME)

    @_healing
    def ls(self) -> list[ConversationEntry]:
        """All conversations, last saved first."""
        heads = self._db.execute(
            "SELECT heads.model, conversation, last, tail, tokens, saved, pinned, fingerprint, name FROM heads "
            "JOIN models ON models.id = heads.model ORDER BY saved DESC"
        ).fetchall()
        chains = [self._chain(row[0], row[2], row[3]) for row in heads]
        users: dict[tuple[int, bytes], int] = {}
        for row, chain in zip(heads, chains, strict=True):
            for key in chain:
                users[row[0], key] = users.get((row[0], key), 0) + 1
        return [self._entry(row, chain, users) for row, chain in zip(heads, chains, strict=True)]

    @_healing
    def stat(self) -> StoreStat:
        count = dict(self._db.execute("SELECT kind, count(DISTINCT key) FROM records GROUP BY kind").fetchall())
        index = sum(path.stat().st_size for path in self.folder.glob(INDEX_NAME + "*"))
        return StoreStat(
            str(self.folder),
            conversations=self._one("SELECT count(DISTINCT conversation) FROM heads"),
            pages=count.get(0, 0),
            tails=count.get(1, 0),
            models=self._one("SELECT count(DISTINCT model) FROM records"),
            segments=self._one("SELECT count(*) FROM segments"),
            bytes_on_disk=segment_bytes(self._segments) + index,
            live_bytes=live_bytes(self._db),
            index_bytes=index,
            bytes_written=counter(self._db, "written"),
        )

    @_healing
    def verify(self, drop_damaged: bool = False, on_progress: Callable[[int, int], None] | None = None) -> VerifyReport:
        """Reads every record and checks it layer by layer. `drop_damaged`: damaged ones count as absent from now on."""
        rows = self._db.execute(
            "SELECT segments.name, offset, length, key, parent, start, tokens, model FROM records "
            "LEFT JOIN segments ON segments.id = segment ORDER BY segments.name, offset"
        ).fetchall()
        damaged: list[Damage] = []
        for number, row in enumerate(rows):
            why = self._check(*row[:5])
            if why:
                damaged.append(Damage(row[0], row[1], row[3].hex(), row[5], row[6], why))
                if drop_damaged:
                    with transaction(self._db):
                        remove_records(self._db, row[7], [Key(row[3])], "damaged")
            if on_progress:
                on_progress(number + 1, len(rows))
        return VerifyReport(len(rows), sum(row[2] for row in rows), tuple(damaged))

    @_healing
    def gc(self, budget: int) -> Collected:
        """Brings the store to `budget` bytes. StoreError: another process is at it."""
        with maintenance(self.folder, 30) as free:
            if not free:
                raise StoreError("The store is being tidied already.", "Another process is at it.", "Try again later.")
            return collect(self._db, self._segments, budget, reason="evicted by gc")

    @_healing
    def forget(self, conversation: str) -> int:
        """Removes what is kept of a conversation, of all models, except what others use; returns of how many models it
        was. The bytes come back when their segment is tidied."""
        query = "SELECT model, fingerprint FROM heads JOIN models ON models.id = model WHERE conversation = ?"
        models = self._db.execute(query, (conversation,)).fetchall()
        if models:
            say_forgotten(self._db, self._segments, conversation, [fingerprint for _, fingerprint in models])
        with transaction(self._db) as db:
            for model, _ in models:
                forget_head(db, model, conversation, delete=True)
        return len(models)

    @_healing
    def names(self) -> list[str]:
        """Of all that something is kept of: conversations, and documents that were read ahead."""
        return [str(row[0]) for row in self._db.execute("SELECT DISTINCT conversation FROM heads")]

    @_healing
    def show(self, conversation: str) -> StateEntry:
        """The page map of a conversation. StoreError: there is none of that name."""
        return show(self._db, conversation)

    @_healing
    def diff(self, first: str, second: str) -> StateDifference:
        """Where two conversations part. StoreError: one is not there."""
        return diff(self._db, self._segments, first, second)

    @_healing
    def export_state(self, conversation: str, target: Path) -> Transferred:
        """Writes a conversation's state into one file. StoreError: a part is missing or damaged."""
        return export_state(self._db, self._segments, conversation, target)

    @_healing
    def import_state(self, source: Path) -> Transferred:
        """Takes an exported state in. StoreError: the file is not whole or not sound."""
        return import_state(self._db, self._segments, source)

    @_healing
    def pin(self, conversation: str, pinned: bool) -> bool:
        """Keeps a conversation's pages from being evicted; False if there is no such conversation."""
        with transaction(self._db) as db:
            changed = db.execute("UPDATE heads SET pinned = ? WHERE conversation = ?", (pinned, conversation))
        return changed.rowcount > 0

    def _one(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def _chain(self, model: int, last: bytes, tail: bytes | None) -> dict[bytes, tuple[int, int, int]]:
        """key -> (start, tokens, bytes) of what is on disk from the tail up."""
        chain: dict[bytes, tuple[int, int, int]] = {}
        query = "SELECT max(parent), max(start), max(tokens), sum(length) FROM records WHERE model = ? AND key = ?"
        for key in filter(None, (tail, last)):
            row = self._db.execute(query, (model, key)).fetchone()
            while row[0] is not None and key not in chain:
                chain[key] = (row[1], row[2], row[3])
                key = row[0]
                row = self._db.execute(query, (model, key)).fetchone()
        return chain

    def _entry(
        self,
        head: tuple[int, str, bytes, bytes | None, int, float, int, bytes, str],
        chain: dict[bytes, tuple[int, int, int]],
        users: dict[tuple[int, bytes], int],
    ) -> ConversationEntry:
        model, conversation, _, _, tokens, saved, pinned, fingerprint, name = head
        position = 0
        for start, count, _ in sorted(chain.values()):
            position = start + count if start == position else position
        shared = sum(size for key, (_, _, size) in chain.items() if users[model, key] > 1)
        total = sum(size for _, _, size in chain.values())
        return ConversationEntry(
            conversation, name, fingerprint.hex(), tokens, position, total, shared, saved, bool(pinned)
        )

    def _check(self, segment: str | None, offset: int, length: int, key: bytes, parent: bytes) -> str:
        """Why a record cannot be used, "" if it can."""
        if segment is None:
            return "its file is not in the index"
        try:
            descriptor = os.open(self._segments / segment, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            return f"its file cannot be opened: {error.strerror}"
        try:
            header = read_header(descriptor, offset)
            if header is None:
                return "its header is damaged"
            if (header.key, header.parent, header.record_bytes) != (key, parent, length):
                return "another record lies in its place"
            return "" if _payload_intact(descriptor, offset, header) else "its checksum does not agree"
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        finally:
            os.close(descriptor)


def _payload_intact(descriptor: int, offset: int, header: RecordHeader) -> bool:
    data = os.pread(descriptor, header.payload_bytes, offset + header.payload_offset)
    return intact(header, np.frombuffer(data, np.uint8))
