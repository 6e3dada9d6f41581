"""Changes of a history since its last turn, each with its time: they are told with the next turn."""

from __future__ import annotations

import sqlite_utils

from app.core.database import MigratedDatabase
from app.core.spans import Operation
from engine.messages import ConversationId


class OperationStore:
    """Usable from every thread and from several processes."""

    def __init__(self, database: MigratedDatabase) -> None:
        self._database = database

    def note(self, conversation: ConversationId, operation: Operation, change: str = "") -> None:
        """`change`: that it made, see undoing.py."""
        row = (conversation, operation.name, operation.milliseconds, operation.tokens, change)
        query = "INSERT INTO operations (conversation, name, milliseconds, tokens, change) VALUES (?, ?, ?, ?, ?)"
        with self._database.transaction() as db:
            db.execute(query, row)

    def cancel(self, conversation: ConversationId, change: str) -> bool:
        """That change was taken back before a turn followed it; False: one has."""
        last = "SELECT max(id) FROM operations WHERE conversation = ? AND change = ? AND change != ''"
        with self._database.transaction() as db:
            (found,) = db.execute(last, [conversation, change]).fetchone()
            db.execute("DELETE FROM operations WHERE id = ?", [found])
        return found is not None

    def take(self, conversation: ConversationId) -> tuple[Operation, ...]:
        """Those since the last call, in order."""
        with self._database.transaction() as db:
            found = _of(db, conversation)
            db.execute("DELETE FROM operations WHERE conversation = ?", [conversation])
        return found


def _of(db: sqlite_utils.Database, conversation: ConversationId) -> tuple[Operation, ...]:
    query = "SELECT name, milliseconds, tokens FROM operations WHERE conversation = ? ORDER BY id"
    return tuple(Operation(*row) for row in db.execute(query, [conversation]).fetchall())
