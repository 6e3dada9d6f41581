"""What SQLite's result codes mean to a reader. Codes: https://www.sqlite.org/rescode.html"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PRIMARY = 0xFF  # extended codes carry the primary one in the low byte


@dataclass(frozen=True)
class Fault:
    """Cause and way out. `damaged`: the file itself is broken; what to do then depends on what it held."""

    why: str
    next: str
    damaged: bool = False


def fault_of(error: sqlite3.Error, path: Path) -> Fault | None:
    """The fault in the reader's world (disk, rights, damage, another program), None for a fault of ours."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    if code in DAMAGED:
        return Fault(f"{path} is damaged or no database: {error}.", "", damaged=True)
    texts = _FAULTS.get(code)
    return None if texts is None else Fault(texts[0].format(path=path, error=error), texts[1])


_FAULTS = {
    sqlite3.SQLITE_FULL: ("The disk that holds {path} is full.", "Free some space, then try again."),
    sqlite3.SQLITE_READONLY: ("{path} cannot be written: it is read-only.", "Check the rights of file and folder."),
    sqlite3.SQLITE_PERM: ("{path} may not be used: {error}.", "Check the rights of file and folder."),
    sqlite3.SQLITE_CANTOPEN: (
        "{path} or a file beside it cannot be opened.",
        "Check the folder, its rights and space.",
    ),
    sqlite3.SQLITE_BUSY: ("Another program holds {path}.", "Wait until it is done, or close it, then try again."),
    sqlite3.SQLITE_LOCKED: ("Another program holds {path}.", "Wait until it is done, or close it, then try again."),
    sqlite3.SQLITE_IOERR: ("{path} could not be read or written: {error}.", "Check the disk and its free space."),
}
