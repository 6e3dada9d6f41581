"""What the cache did, line by line, for people: one JSON object a line, in a file that all processes append to."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from engine.kv.notices import NOT_SAVED

LogLevel = Literal["off", "warn", "info", "debug"]
LEVELS: tuple[LogLevel, ...] = ("off", "warn", "info", "debug")
FILE_NAME = "operations.jsonl"
_MOST_BYTES = 4 << 20
_FLUSH_LINES = 64
_LOOKED_AT = 2000  # entries
_ABOUT_SECONDS = 60.0  # after a refusal nothing is written for a while, and nothing more is said


class KvLog:
    """Collects lines and appends them in one write; a full disk loses lines, never work.

    Levels: "warn" damage and refusals; "info" an entry per operation on a conversation; "debug" one per page too.
    """

    def __init__(self, folder: Path | None, level: LogLevel = "info") -> None:
        self._path = folder / FILE_NAME if folder else None
        self._level = LEVELS.index(level)
        self._lines: list[str] = []

    def wants(self, level: LogLevel) -> bool:
        return self._path is not None and LEVELS.index(level) <= self._level

    def add(self, level: LogLevel, operation: str, **fields: Any) -> None:
        """Notes an operation; None fields are left out."""
        if not self.wants(level):
            return
        entry = {"at": round(time.time(), 3), "process": os.getpid(), "level": level, "operation": operation}
        known = {key: round(v, 3) if isinstance(v, float) else v for key, v in fields.items() if v is not None}
        self._lines.append(json.dumps({**entry, **known}))
        if len(self._lines) >= _FLUSH_LINES:
            self.flush()

    def flush(self) -> None:
        if self._path is None or not self._lines:
            return
        lines, self._lines = self._lines, []
        try:
            self._rotate(self._path)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, ("\n".join(lines) + "\n").encode())
            finally:
                os.close(descriptor)
        except OSError:
            return

    def _rotate(self, path: Path) -> None:
        if path.exists() and path.stat().st_size > _MOST_BYTES:
            path.replace(path.with_suffix(".old.jsonl"))


def read_log(folder: Path, last: int, level: LogLevel = "debug", conversation: str = "") -> list[dict[str, Any]]:
    """The latest `last` entries up to a level, oldest first; lines cut short by a crash are left out.

    Sorted by time: each process appends its lines in batches.
    """
    path = folder / FILE_NAME
    files = [file for file in (path.with_suffix(".old.jsonl"), path) if file.exists()]
    wanted = [
        entry
        for file in files
        for entry in _entries(file)
        if LEVELS.index(entry["level"]) <= LEVELS.index(level)
        and (not conversation or conversation in (entry.get("conversation"), entry.get("source")))
    ]
    return sorted(wanted, key=lambda entry: entry["at"])[-last:]


def last_refusal(folder: Path, conversation: str = "") -> dict[str, Any] | None:
    """The last entry that says that nothing could be saved, if that is why nothing is kept: no save was noted after it,
    but for those of about then, and nothing was removed. With a conversation: its own last save was of about then."""
    log = read_log(folder, _LOOKED_AT, "info")
    refused = next((e for e in reversed(log) if e["operation"] == "notice" and e.get("what") == NOT_SAVED), None)
    if refused is None:
        return None
    own = [entry for entry in log if not conversation or entry.get("conversation") == conversation]
    saved = max((e["at"] for e in own if e["operation"] == "save"), default=None)
    if any(e["operation"] == "remove" and e.get("reason") == "asked for" and e["at"] > refused["at"] for e in own):
        return None
    if saved is None:
        return None if conversation else refused
    apart = saved - refused["at"]
    return refused if (abs(apart) if conversation else apart) <= _ABOUT_SECONDS else None


def _entries(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("level") in LEVELS and isinstance(entry.get("at"), int | float):
            yield entry
