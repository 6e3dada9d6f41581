"""A SQLite file with numbered migrations: WAL, private, copied before it is migrated, refused when newer.

One connection, serialised by a lock, usable from every thread; other processes may have the same file open.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlite_utils

from app.core.errors import UserError
from app.core.paths import PRIVATE_FILE, make_private_folder

BUSY_SECONDS = 20.0
Migration = Callable[[sqlite_utils.Database], None]


class MigratedDatabase:
    """Opens `path` and brings it to `len(migrations)`; `what` names it for the reader.

    Raises UserError, the file unchanged, when a newer Pagekeep wrote it or it is no sound database.
    """

    def __init__(self, path: Path, migrations: Sequence[Migration], what: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
        self.db = sqlite_utils.Database(_connect(path))
        try:
            _prepare(self.db.conn)
            self._migrate(migrations, what)
        except UserError:
            self.close()
            raise
        except sqlite3.DatabaseError as error:
            self.close()
            raise UserError(
                f"{what} could not be opened.",
                f"{path} is damaged or no database: {error}.",
                "Move the file away, or put a copy from the same folder in its place.",
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite_utils.Database]:
        """All or nothing, write lock taken at once (no upgrade that another process could make fail)."""
        with self._lock:
            if self.db.conn.in_transaction:
                yield self.db
                return
            self.db.conn.execute("BEGIN IMMEDIATE")
            try:
                yield self.db
            except BaseException:
                self.db.rollback()
                raise
            self.db.commit()

    @contextmanager
    def reading(self) -> Iterator[sqlite_utils.Database]:
        with self._lock:
            yield self.db

    def close(self) -> None:
        with self._lock:
            self.db.close()

    def _migrate(self, migrations: Sequence[Migration], what: str) -> None:
        version = self._version()
        if version > len(migrations):
            raise UserError(
                f"{what} were written by a newer Pagekeep.",
                f"{self.path} has format {version}, this version knows {len(migrations)}.",
                "Start the newer Pagekeep; nothing was changed.",
            )
        if version == len(migrations):
            return
        if version > 0:
            _copy(self.db.conn, self.path.with_name(f"{self.path.name}.format-{version}"))
        with self.transaction() as db:
            for number in range(self._version(), len(migrations)):  # another process may have been quicker
                migrations[number](db)
                db.conn.execute(f"PRAGMA user_version = {number + 1}")

    def _version(self) -> int:
        return int(self.db.conn.execute("PRAGMA user_version").fetchone()[0])


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _copy(source: sqlite3.Connection, path: Path) -> None:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE))
    target = sqlite3.connect(path)
    try:
        source.backup(target)
    finally:
        target.close()
