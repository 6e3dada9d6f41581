"""SQLite files in a folder that cannot be written: they can be read all the same."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path


def only_readable(path: Path) -> bool:
    """The file is there, but it or its folder (where SQLite keeps side files) cannot be written."""
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def connect_read_only(path: Path) -> sqlite3.Connection:
    """In autocommit mode, closable from any thread. Where no side files can be made the file is taken as it lies;
    what another process has not brought into it yet is not seen. sqlite3.Error: not a usable database."""
    try:
        return _connect(path, "mode=ro")
    except sqlite3.OperationalError:
        return _connect(path, "mode=ro&immutable=1")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    name = f"{path.absolute().as_uri()}?{how}"
    connection = sqlite3.connect(name, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA user_version").fetchone()
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
