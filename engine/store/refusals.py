"""Why something was not saved: in words for the reader, and noted by conversation for whoever asks later."""

from __future__ import annotations

import contextlib
import errno
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from engine.kv.disk import Gone
from engine.kv.notices import NOT_SAVED, Notice
from engine.store.index import Index
from engine.store.rows import refusal_name, transaction

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_RETRY_SECONDS = 30.0
_AGAIN = "They go on from memory; saving is tried again."


class DiskFull(OSError):
    """State is a cache: the last of the disk is left to what cannot be computed again, texts above all."""

    def __init__(self, left: int) -> None:
        why = f"The disk is full; its last {left / 1e6:,.1f} MB are left to texts and other programs."
        super().__init__(errno.ENOSPC, why)


class OverBudget(OSError):
    """The disk budget leaves no room. `pinned`: bytes that pinned conversations hold of it."""

    def __init__(self, budget: int, pinned: int) -> None:
        held = f"; pinned conversations hold {pinned / 1e6:,.1f} MB" if pinned else ""
        super().__init__(f"The disk budget of {budget / 1e6:,.1f} MB is used up{held}.")
        self.pinned = pinned


class Refusals:
    """What is refused, for a while after it could not be written. On the writing thread, but for `active` and `end`.

    Attributes: why: in words, what was to be saved last was not; "" if it was.
    """

    def __init__(self, notify: Callable[[Notice], None]) -> None:
        self._notify = notify
        self._until = 0.0
        self._reason = self.why = ""
        self._untold: dict[str, tuple[str, float]] = {}

    @property
    def active(self) -> bool:
        """What is to be written now would be refused."""
        return time.monotonic() < self._until

    def begin(self, error: Exception) -> None:
        notice, told = _notice(error), self.active
        self.why, self._reason = notice.why, _reason(error)
        self._until = time.monotonic() + _RETRY_SECONDS
        if not told:
            self._notify(notice)

    def end(self) -> None:
        """It is tried again at once."""
        self._until = 0.0

    def note(self, index: Index, conversations: Sequence[str]) -> None:
        """What these have at their end now is not kept; their next save forgets that."""
        self._untold |= {conversation: (self._reason, time.time()) for conversation in conversations}
        self.note_rest(index)

    def note_rest(self, index: Index) -> None:
        """What had no room in the index either, whenever there may be some: its log leaves some once it is brought into
        it."""
        untold = self._untold
        if not untold:
            return
        for _ in range(2):
            with contextlib.suppress(sqlite3.Error):
                index.maintain(lambda db: _note(db, index.model, untold))
                self._untold = {}
                return
            with contextlib.suppress(sqlite3.Error):
                index.maintain(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))

    def saved(self, conversations: Iterable[str]) -> None:
        """These were kept since."""
        for conversation in conversations:
            self._untold.pop(conversation, None)


def _notice(error: Exception) -> Notice:
    if isinstance(error, OverBudget):
        pins = "Unpin some, or raise" if error.pinned else "Free some space (pagekeep cache rm), or raise"
        return Notice(NOT_SAVED, str(error), f"{_AGAIN} {pins} the disk budget.")
    if _is_full(error):
        why = str(error.strerror) if isinstance(error, DiskFull) else "The disk is full."
        return Notice(NOT_SAVED, why, f"{_AGAIN} Free some space.")
    return Notice(NOT_SAVED, f"Writing failed: {error}.", _AGAIN)


def _reason(error: Exception) -> str:
    """As in messages.ComputedRange."""
    if isinstance(error, OverBudget):
        return "refused by the budget"
    return "refused by a full disk" if _is_full(error) else "refused by an error"


def _note(db: sqlite3.Connection, model: int, refused: Mapping[str, tuple[str, float]]) -> None:
    with transaction(db):
        rows = ((refusal_name(model, name), json.dumps(value)) for name, value in refused.items())
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def refusal(db: sqlite3.Connection, model: int, conversation: str) -> Gone | None:
    """Why the end of a conversation was not saved last, and when; None if it was."""
    name = (refusal_name(model, conversation),)
    row = db.execute("SELECT value FROM meta WHERE name = ?", name).fetchone()
    return _read(row[0]) if row else None


def refusals(db: sqlite3.Connection) -> dict[str, Gone]:
    """The same of all conversations whose end was not saved last, under whichever model; the latest of each."""
    rows = db.execute("SELECT name, value FROM meta WHERE name >= 'refused ' AND name < 'refused!'").fetchall()
    found = sorted(
        ((name.split(" ", 2)[2], gone) for name, value in rows if (gone := _read(value))), key=lambda one: one[1].at
    )
    return dict(found)


def _read(value: str) -> Gone | None:
    try:
        reason, at = json.loads(value)
        return Gone(str(reason), float(at)) if reason else None
    except (ValueError, TypeError):
        return None


def _is_full(error: Exception) -> bool:
    full = isinstance(error, OSError) and error.errno in _FULL
    return full or (isinstance(error, sqlite3.Error) and "full" in str(error))
