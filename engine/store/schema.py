"""The index database: its tables and how a connection is opened."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from engine.errors import StoreError
from engine.store.locks import FILE_MODE, private_file

VERSION = 1
_BUSY_MS = 10_000

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS models (
  id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL UNIQUE, name TEXT NOT NULL DEFAULT '', layout TEXT NOT
  NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS segments (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, scanned INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS records (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, key BLOB NOT NULL, grp INTEGER NOT NULL,
  parent BLOB NOT NULL, kind INTEGER NOT NULL, start INTEGER NOT NULL, tokens INTEGER NOT NULL,
  segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, payload INTEGER NOT NULL,
  numerics TEXT NOT NULL, used REAL NOT NULL, UNIQUE (model, key, grp));
CREATE INDEX IF NOT EXISTS records_parent ON records (model, parent);
CREATE INDEX IF NOT EXISTS records_segment ON records (segment);
CREATE TABLE IF NOT EXISTS heads (
  model INTEGER NOT NULL, conversation TEXT NOT NULL, last BLOB NOT NULL, tail BLOB, tokens INTEGER NOT NULL,
  saved REAL NOT NULL, pinned INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (model, conversation)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS removed (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS gone (
  model INTEGER NOT NULL, key BLOB NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (model,
  key)) WITHOUT ROWID;
"""


def connect(path: Path) -> sqlite3.Connection:
    """Opens (and makes) the index; usable from any thread, one at a time. sqlite3.Error: not a usable database."""
    _make_private(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_BUSY_MS / 1000)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        _prepare(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def cannot_open(what: str, folder: Path, error: Exception, advice: str) -> StoreError:
    """`advice`: what to do, unless the index is of a newer version."""
    newer = isinstance(error, sqlite3.NotSupportedError)
    return StoreError(
        what, f"{folder}: {error_words(error)}.", "Update Pagekeep; texts are not concerned." if newer else advice
    )


def error_words(error: Exception) -> str:
    """Without the number, and the path that is named beside it."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def empty() -> sqlite3.Connection:
    """An index of nothing, in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    _prepare(connection)
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """The index in a folder that cannot be written; without side files it is taken as it lies. sqlite3.Error."""
    try:
        return _checked(path, "mode=ro")
    except sqlite3.OperationalError:
        return _checked(path, "mode=ro&immutable=1")


def _checked(path: Path, how: str) -> sqlite3.Connection:
    name = f"{path.absolute().as_uri()}?{how}"
    connection = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """Makes the file before SQLite does, for its mode. One that exists must not be opened here: closing it again would
    drop the locks that other connections of this process hold on it."""
    with contextlib.suppress(FileExistsError):
        os.close(private_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
    path.chmod(FILE_MODE)


def _prepare(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        raise sqlite3.NotSupportedError(f"its index has version {found}, this Pagekeep knows {VERSION}")
    if found < VERSION:
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version={VERSION}; COMMIT;")
