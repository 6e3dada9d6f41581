"""Looking at and tidying a store from the command line: no model and no engine needed, whatever models it holds."""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from engine.errors import StoreError
from engine.kv.disk import Gone
from engine.kv.keys import Key
from engine.kv.log import KvLog, LogLevel
from engine.kv.notices import Notice
from engine.store.account import StoreStat, account
from engine.store.budget import Collected, collect, live_bytes
from engine.store.checking import Damage, Users, VerifyReport, why_unusable
from engine.store.inspect import StateDifference, StateEntry, diff, show
from engine.store.listing import ConversationEntry, conversations
from engine.store.locks import maintenance
from engine.store.opening import INDEX_NAME, SEGMENTS_NAME, prepare
from engine.store.pins import forget_pins, set_pins
from engine.store.recovery import Recovered, is_damage, say_forgotten
from engine.store.refusals import refusals
from engine.store.rows import forget_head, remove_records, transaction
from engine.store.schema import cannot_open, connect, connect_read_only, empty, error_words
from engine.store.transfer import Transferred, export_state, import_state
from engine.store.unclaimed import Unclaimed, unclaimed

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Forgotten:
    """What was removed: of `models` models. The bytes come back when their segments are tidied."""

    models: int
    records: int
    bytes: int


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


def _changing(work: Callable[Concatenate[StoreTools, P], T]) -> Callable[Concatenate[StoreTools, P], T]:
    """StoreError where the store can only be read."""

    @functools.wraps(work)
    def changed(self: StoreTools, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self.read_only:
            raise StoreError("Nothing was changed.", f"{self.folder}: {self.read_only}.", "Check its disk and rights.")
        return work(self, *args, **kwargs)

    return _healing(changed)


class StoreTools:
    """Opens the index of `folder`. StoreError: there is no usable store. Use as a context manager.

    Attributes: notices: what the reader should know; read_only: why nothing can be changed, "" if it can.
    """

    def __init__(self, folder: Path, log: LogLevel = "off") -> None:
        """`log`: what of the work is noted in the operation log."""
        self.folder = Path(folder)
        self._log = KvLog(self.folder, log)
        self._segments = self.folder / SEGMENTS_NAME
        self.notices: list[Notice] = []
        self.read_only = ""
        try:
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            what = "The saved conversations cannot be read."
            raise cannot_open(what, self.folder, error, "Check the folder's permissions.") from error

    def _open(self) -> sqlite3.Connection:
        """Where nothing can be written (rights, a full disk) the index is read as it is; none is as an empty one."""
        index = self.folder / INDEX_NAME
        if index.is_file() and not (os.access(index, os.W_OK) and os.access(self.folder, os.W_OK)):
            self.read_only = "it cannot be written"
            return connect_read_only(index)
        try:
            self._tell(prepare(self.folder))
            return connect(index)
        except (OSError, sqlite3.OperationalError) as error:
            if self.folder.exists() and not index.is_file():
                raise
            self.read_only = error_words(error)
            return connect_read_only(index) if index.is_file() else empty()

    def _tell(self, recovered: Recovered) -> None:
        """Of an index that had to be made anew, and of files that are gone."""
        recovered.note(self._log)
        self.notices += recovered.notices()

    def __enter__(self) -> StoreTools:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.flush()
        self._db.close()

    def rebuild(self) -> None:
        """Sets the index aside and makes it anew from the segments. StoreError: nothing can be written."""
        if self.read_only:
            why = f"The index in {self.folder} is damaged, and cannot be made anew: {self.read_only}."
            raise StoreError("The saved conversations cannot be read.", why, "Check the folder's disk and rights.")
        self._db.close()
        self._tell(prepare(self.folder, anew=True))
        self._db = connect(self.folder / INDEX_NAME)

    @_healing
    def ls(self) -> list[ConversationEntry]:
        """All conversations, last saved first."""
        return conversations(self._db, self._segments)

    @_healing
    def unclaimed(self) -> list[Unclaimed]:
        """What is on disk of no conversation's state, model by model."""
        return unclaimed(self._db)

    @_healing
    def refused(self) -> dict[str, Gone]:
        """Conversations whose end was not saved last: why, and when. What was saved before it may be unclaimed."""
        return refusals(self._db)

    @_healing
    def stat(self) -> StoreStat:
        return account(self._db, self.folder, self._segments)

    @_healing
    def verify(self, drop_damaged: bool = False, on_progress: Callable[[int, int], None] | None = None) -> VerifyReport:
        """Reads every record and checks it layer by layer; tells what went with its file too. `drop_damaged`: damaged
        ones count as absent from now on, where the store can be changed."""
        rows = self._db.execute(
            "SELECT segments.name, offset, length, key, parent, start, tokens, model FROM records "
            "LEFT JOIN segments ON segments.id = segment ORDER BY segments.name, offset"
        ).fetchall()
        damaged, users = list[Damage](), Users(self._db)
        for number, row in enumerate(rows):
            why = why_unusable(self._segments, *row[:5])
            if why:
                named = users.of(row[7], row[3])
                damaged.append(Damage(row[0], row[1], row[3].hex(), row[5], row[6], why, named))
                if drop_damaged and not self.read_only:
                    with transaction(self._db):
                        remove_records(self._db, row[7], [Key(row[3])], "damaged")
                    self._log.add("warn", "quarantine", start=row[5], tokens=row[6], bytes=row[2], reason=why)
            if on_progress:
                on_progress(number + 1, len(rows))
        size = sum(row[2] for row in rows)
        lost = users.lost_records()
        self._log.add(
            "info", "verify", bytes=size, records=len(rows), damaged=len(damaged), lost=lost or None,
            reason="asked for",
        )  # fmt: skip
        return VerifyReport(len(rows), size, tuple(damaged), lost, users.lost())

    @_changing
    def gc(self, budget: int) -> Collected:
        """Brings the store to `budget` bytes. StoreError: another process is at it."""
        with maintenance(self.folder, 30) as free:
            if not free:
                raise StoreError("The store is being tidied already.", "Another process is at it.", "Try again later.")
            before = self.ls() if live_bytes(self._db) > budget else []
            done = collect(self._db, self._segments, budget, reason="evicted by gc")
            if done.evicted:
                self._note_losses(before, budget)
        self._log.add(
            "info", "gc", bytes=max(0, done.bytes_before - done.bytes_after), evicted=done.evicted,
            files_removed=done.unlinked, files_rewritten=done.compacted,
            reason=f"disk budget of {budget / 1e6:,.1f} MB" if done.evicted else "asked for",
        )  # fmt: skip
        return done

    def _note_losses(self, before: list[ConversationEntry], budget: int) -> None:
        """What each conversation has lost to eviction. Others may save meanwhile: what grew has lost nothing."""
        left = {(entry.conversation, entry.fingerprint): entry for entry in self.ls()}
        for entry in before:
            now = left.get((entry.conversation, entry.fingerprint))  # None: dropped by another process meanwhile
            if now is not None and (lost := entry.bytes - now.bytes) > 0:
                tokens = max(0, entry.tokens_saved - now.tokens_saved)
                self._log.add(
                    "info", "evict", conversation=entry.conversation, tokens=tokens, bytes=lost,
                    reason=f"gc: disk budget of {budget / 1e6:,.1f} MB",
                )  # fmt: skip

    @_changing
    def forget(self, conversation: str) -> Forgotten:
        """Removes what is kept of a conversation, of all models, except what others use."""
        query = "SELECT model, fingerprint FROM heads JOIN models ON models.id = model WHERE conversation = ?"
        models = self._db.execute(query, (conversation,)).fetchall()
        if models:
            say_forgotten(self._db, self._segments, conversation, [fingerprint for _, fingerprint in models])
        with transaction(self._db) as db:  # nobody else writes between the two counts
            before, count = live_bytes(db), self._records()
            for model, _ in models:
                forget_head(db, model, conversation, delete=True)
            forget_pins(db, self.folder, conversation, [model for model, _ in models])
            done = Forgotten(len(models), count - self._records(), before - live_bytes(db))
        if models:
            self._log.add(
                "info", "remove", conversation=conversation, bytes=done.bytes, records=done.records,
                reason="asked for",
            )  # fmt: skip
        return done

    @_healing
    def names(self) -> list[str]:
        """Of all that something is kept of: conversations, and documents that were read ahead."""
        return [str(row[0]) for row in self._db.execute("SELECT DISTINCT conversation FROM heads")]

    @_healing
    def show(self, conversation: str) -> StateEntry:
        """The page map of a conversation. StoreError: there is none of that name."""
        return show(self._db, self._segments, conversation)

    @_healing
    def diff(self, first: str, second: str) -> StateDifference:
        """Where two conversations part. StoreError: one is not there."""
        return diff(self._db, self._segments, first, second)

    @_healing
    def export_state(self, conversation: str, target: Path) -> Transferred:
        """Writes a conversation's state into one file. StoreError: a part is missing or damaged."""
        return self._moved("export", export_state(self._db, self._segments, conversation, target), target)

    @_changing
    def import_state(self, source: Path) -> Transferred:
        """Takes an exported state in. StoreError: the file is not whole or not sound."""
        return self._moved("import", import_state(self._db, self._segments, source), source)

    def _moved(self, operation: str, done: Transferred, file: Path) -> Transferred:
        self._log.add(
            "info", operation, conversation=done.conversation, tokens=done.tokens, bytes=done.bytes,
            records=done.records, snapshots=done.states or None, new=done.new if operation == "import" else None,
            file=file.name, reason="asked for",
        )  # fmt: skip
        return done

    @_changing
    def pin(self, conversation: str, pinned: bool) -> bool:
        """Keeps a conversation's pages from being evicted; False if there is no such conversation."""
        with transaction(self._db) as db:
            changed = set_pins(db, self.folder, conversation, pinned)
        for entry in (entry for entry in self.ls() if entry.conversation == conversation):
            self._log.add(
                "info", "pin" if pinned else "unpin", conversation=conversation, tokens=entry.tokens_saved,
                bytes=entry.bytes, reason="asked for",
            )  # fmt: skip
        return changed > 0

    def _records(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM records").fetchone()[0])
