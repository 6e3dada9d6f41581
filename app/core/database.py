"""A SQLite file with numbered migrations: WAL, private, copied before it is migrated, refused when newer.

One connection, serialised by a lock, usable from every thread; other processes may have the same file open.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlite_utils

from app.core.errors import UserError
from app.core.paths import PRIVATE_FILE, make_private_folder
from rag.index.faults import fault_of
from rag.index.readonly import connect_read_only, only_readable

BUSY_SECONDS = 20.0
Migration = Callable[[sqlite_utils.Database], None]


class MigratedDatabase:
    """Opens `path` and brings it to `len(migrations)`; `what` names it for the reader.

    Raises UserError, the file unchanged, when a newer Pagekeep wrote it or it is no sound database; later ones
    when the disk is full, the file read-only, damaged or held by another program. In a folder that cannot be written
    it can be read.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], what: str) -> None:
        self.path = path
        self._what = what
        self._lock = threading.RLock()
        make_private_folder(path.parent)
        fixed = only_readable(path)
        try:
            self.db = sqlite_utils.Database(connect_read_only(path) if fixed else _connect(path))
        except sqlite3.Error as error:
            raise self._told(error) or self._damaged(f"{path}: {error}.") from error
        try:
            if not fixed:
                _prepare(self.db.conn)
            self._migrate(migrations, what, fixed)
        except UserError:
            self.close()
            raise
        except sqlite3.DatabaseError as error:
            self.close()
            raise self._told(error) or self._damaged(f"{path}: {error}.") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite_utils.Database]:
        """All or nothing, write lock taken at once (no upgrade that another process could make fail)."""
        with self._lock, self._telling():
            if self.db.conn.in_transaction:
                yield self.db
                return
            self.db.conn.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
                self.db.commit()
            except BaseException:
                self.db.rollback()
                raise

    @contextmanager
    def trial(self) -> Iterator[sqlite_utils.Database]:
        """As a transaction, but all of it is taken back at the end: to see how things would stand. Not within one."""
        with self._lock, self._telling():
            assert not self.db.conn.in_transaction
            self.db.conn.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
            finally:
                self.db.rollback()

    @contextmanager
    def reading(self) -> Iterator[sqlite_utils.Database]:
        with self._lock, self._telling():
            yield self.db

    def changes_elsewhere(self) -> int:
        """A number that is another one after any other connection, of this or another process, has written."""
        with self.reading() as db:
            return int(db.conn.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        with self._lock:
            self.db.close()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            told = self._told(error)
            if told is None:
                raise
            raise told from error

    def _told(self, error: sqlite3.Error) -> UserError | None:
        """None: a fault of ours."""
        fault = fault_of(error, self.path)
        if fault is None:
            return None
        if fault.damaged:
            return self._damaged(fault.why)
        return UserError(f"{self._what} cannot be used.", fault.why, fault.next)

    def _damaged(self, why: str) -> UserError:
        """Names the copies that were made before migrations, where there are any."""
        copies = sorted(path.name for path in self.path.parent.glob(f"{self.path.name}.format-*"))
        if copies:
            way_out = (
                f"Move the file away and put a copy in its place: {copies[-1]}, made before an update, is beside it."
            )
        else:
            way_out = "Move the file away, or put a backup of yours in its place; without it Pagekeep begins a new one."
        return UserError(f"{self._what} could not be opened.", why, way_out)

    def _migrate(self, migrations: Sequence[Migration], what: str, fixed: bool) -> None:
        version = self._version()
        if version > len(migrations):
            raise UserError(
                f"{what} were written by a newer Pagekeep.",
                f"{self.path} has format {version}, this version knows {len(migrations)}.",
                "Start the newer Pagekeep; nothing was changed.",
            )
        if version == len(migrations):
            return
        if fixed:
            raise UserError(
                f"{what} were written by an older Pagekeep, and cannot be brought up to date where they are.",
                f"{self.path} has format {version}, this version reads {len(migrations)}; it cannot be written there.",
                "Make both writable, or copy the folder to where it can be written; nothing was changed.",
            )
        if version > 0:
            _copy(self.db.conn, self.path.with_name(f"{self.path.name}.format-{version}"))
        with self.transaction() as db:
            for number in range(self._version(), len(migrations)):  # another process may have been quicker
                migrations[number](db)
                db.conn.execute(f"PRAGMA user_version = {number + 1}")

    def _version(self) -> int:
        return int(self.db.conn.execute("PRAGMA user_version").fetchone()[0])


def _connect(path: Path) -> sqlite3.Connection:
    with suppress(FileExistsError):  # one that exists must not be opened and closed: that drops this process's locks
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    return sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)


def _prepare(connection: sqlite3.Connection) -> None:
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for others while the mode is changed, so this does: two processes may start at once."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _copy(source: sqlite3.Connection, path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE))
    target = sqlite3.connect(path)
    try:
        source.backup(target)
    finally:
        target.close()
