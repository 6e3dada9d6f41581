"""SQLite connections: one per thread, private files, explicit transactions."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlite_utils import Database as SqliteUtils

from rag.errors import DocumentError
from rag.index.faults import fault_of
from rag.index.migrations import migrate
from rag.index.readonly import connect_read_only, only_readable

Row = dict[str, Any]
NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT)
BUSY_MS = 30_000
REBUILD = (
    "Move {path} away and add the documents again; the library is rebuilt from them, and their copies are still in "
    "the folder beside it. Conversations are not affected."
)


def private_folder(folder: Path) -> Path:
    """The folder, made if it is missing and its own folder can be written, for its owner only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in NOT_WRITABLE:  # what is there can be read without it
            return folder
        raise
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        with contextlib.suppress(OSError):  # on a read-only disk it stays as it is
            folder.chmod(0o700)
    return folder


def private_file(path: Path) -> Path:
    """The file, made empty if it is missing, for its owner only. SQLite gives its side files the same mode.

    One that exists is not opened: closing it again would drop the locks that other connections of this process hold on
    it, and the next process to leave would take the log away from under them.
    """
    with contextlib.suppress(FileExistsError):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            if error.errno in NOT_WRITABLE:
                raise not_writable(path.parent, error) from error
            raise
    return path


def not_writable(folder: Path, error: OSError) -> DocumentError:
    way_out = "Check the folder's rights, or set PAGEKEEP_HOME to a folder that can be written."
    why = f"{folder} cannot be written: {error.strerror}."
    return DocumentError("The library cannot be changed.", why, way_out, "library")


class Database:
    """The library's database, usable from several threads and processes (WAL).

    Statements take their values as parameters. Nothing is committed implicitly: writes belong into
    `transaction()`. A full, read-only, locked or damaged database is told as DocumentError ("library", a full
    disk "no_space"). In a folder that cannot be written it can be read.
    """

    def __init__(self, path: Path) -> None:
        self._connect = connect_read_only if only_readable(path) else connect
        self.path = path if self._connect is connect_read_only else private_file(path)
        self._local = threading.local()
        self._open: dict[int, tuple[threading.Thread, SqliteUtils]] = {}
        self._lock = threading.Lock()
        self._watch: sqlite3.Connection | None = None  # writes nothing, so it sees whatever is written
        with self._told():
            migrate(path)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._told():
            return list(self._connection().query(sql, values))

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        found = self.rows(sql, values)
        return found[0] if found else None

    def tuples(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """For large results: no dictionary per row."""
        with self._told():
            found: list[tuple[Any, ...]] = self._connection().conn.execute(sql, values).fetchall()
            return found

    def run(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        with self._told():
            cursor: sqlite3.Cursor = self._connection().execute(sql, values)
            return cursor

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        with self._told():
            self._connection().conn.executemany(sql, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Takes the write lock at once, commits at the end, rolls back on any exception."""
        with self._told():
            connection = self._connection().conn
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk rolls back by itself
                    connection.execute("ROLLBACK")
                raise

    def changes(self) -> int:
        """A number that is another one after this or another process has written."""
        with self._told(), self._lock:
            if self._watch is None:
                self._watch = self._connect(self.path)
            return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Closes the connections of all threads. The database must not be used after it."""
        with self._lock:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            for _, connection in self._open.values():
                connection.close()
            self._open.clear()
        self._local = threading.local()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raises DocumentError for what is wrong with disk or file; faults of ours stay as they are."""
        try:
            yield
        except sqlite3.Error as error:
            fault = fault_of(error, self.path)
            if fault is None:
                raise
            kind = "no_space" if "is full" in fault.why else "library"
            way_out = REBUILD.format(path=self.path) if fault.damaged else fault.next
            raise DocumentError("The library cannot be used.", fault.why, way_out, kind) from error

    def _connection(self) -> SqliteUtils:
        known: SqliteUtils | None = getattr(self._local, "connection", None)
        if known is None:
            known = self._local.connection = SqliteUtils(self._connect(self.path))
            thread = threading.current_thread()
            with self._lock:
                self._close_ended()
                self._open[id(thread)] = (thread, known)
        return known

    def _close_ended(self) -> None:
        for key, (thread, connection) in list(self._open.items()):
            if not thread.is_alive():
                connection.close()
                del self._open[key]


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode (transactions are explicit), closable from any thread."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection
