"""One process at a time continues a conversation. A lease names its process; a dead process holds nothing.

The process is known by its id and start time, so a crash frees the lease and a reused id does not keep it.
"""

from __future__ import annotations

import contextlib
import os
import time
from functools import cache

import psutil  # type: ignore[import-untyped, unused-ignore]
import sqlite_utils

from app.core.database import MigratedDatabase
from app.core.errors import HeldElsewhere, UserError
from engine.messages import ConversationId

CLOCK_SLACK_S = 2.0  # process start times are read through a clock that may be stepped


def take(database: MigratedDatabase, conversation: ConversationId) -> None:
    """Raises HeldElsewhere while another living process holds the conversation."""
    with database.transaction() as db:
        holder = _holder(db, conversation)
        if holder is not None and holder != os.getpid():
            raise HeldElsewhere(conversation, holder)
        row = {"conversation": conversation, "pid": os.getpid(), "started": _own_start(os.getpid())}
        db.table("leases").upsert({**row, "taken": time.time()}, pk="conversation")


def give_back(database: MigratedDatabase, conversation: ConversationId) -> None:
    """A lease that cannot be given back (a full disk) ends with this process; the turn's outcome counts."""
    with contextlib.suppress(UserError), database.transaction() as db:
        db.execute("DELETE FROM leases WHERE conversation = ? AND pid = ?", [conversation, os.getpid()])


def holder(database: MigratedDatabase, conversation: ConversationId) -> int | None:
    """Process id of the living process that continues the conversation."""
    with database.reading() as db:
        return _holder(db, conversation)


def _holder(db: sqlite_utils.Database, conversation: ConversationId) -> int | None:
    row = db.execute("SELECT pid, started FROM leases WHERE conversation = ?", [conversation]).fetchone()
    if row is None or not _is_alive(int(row[0]), float(row[1])):
        return None
    return int(row[0])


def _is_alive(pid: int, started: float) -> bool:
    try:
        process = psutil.Process(pid)
        same = abs(float(process.create_time()) - started) < CLOCK_SLACK_S
        return same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


@cache
def _own_start(pid: int) -> float:
    return float(psutil.Process(pid).create_time())
