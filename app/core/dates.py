"""The date that a chat template shows (`strftime_now`): stored, never today's, so that no prompt changes at midnight.

A conversation gets its date with its first message and keeps it: in all later turns, when its first question is asked
in other words, and when another tokenizer makes its ids anew. What every conversation on a document begins with (the
template's opening, then the document) is shared, so the document has a date of its own: the day on which it was first
put into a prompt, or read ahead. A conversation that begins with whole documents takes the date of the first of them.
Its price is that such a conversation shows the day the document was first read, not the day it began itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date as Date

from app.core.database import MigratedDatabase
from engine.messages import ConversationId


class DateStore:
    """Usable from every thread and from several processes: the first to store a document's date wins."""

    def __init__(self, database: MigratedDatabase) -> None:
        self._database = database

    def of_document(self, document: int) -> Date | None:
        with self._database.reading() as db:
            row = db.execute("SELECT date FROM document_dates WHERE document = ?", [document]).fetchone()
        return None if row is None else Date.fromisoformat(row[0])

    def keep(self, date: Date | None, documents: Sequence[int], conversation: ConversationId | None = None) -> None:
        """A prompt with these documents was made. None: its conversation began before dates were stored."""
        if date is None:
            return
        with self._database.transaction() as db:
            for document in documents:
                db.execute("INSERT OR IGNORE INTO document_dates VALUES (?, ?)", [document, date.isoformat()])
            if conversation is not None:
                db.execute("UPDATE conversations SET date = ? WHERE id = ?", [date.isoformat(), conversation])

    def forget(self, document: int) -> None:
        """The library may give its id to another document."""
        with self._database.transaction() as db:
            db.execute("DELETE FROM document_dates WHERE document = ?", [document])
