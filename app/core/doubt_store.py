"""Doubts of answers in conversations.db: they are noted with the report."""

from __future__ import annotations

import json
from dataclasses import replace

import sqlite_utils

from app.core.database import MigratedDatabase
from app.core.records import Message, MessageId, PhaseTimes, TokenReport, TurnReport
from app.core.rows import message_from_row

# A copy in a fork has the moment and the ids of what it was made of.
_COPIES = """
SELECT copy.* FROM messages copy JOIN messages original
ON copy.created = original.created AND copy.role = original.role AND copy.ids = original.ids
WHERE original.id = ? AND (copy.report IS NOT NULL OR copy.state = 'complete') ORDER BY copy.id
"""


class DoubtStore:
    """Part of the conversations' store; thread-safe as that is."""

    def __init__(self, database: MigratedDatabase) -> None:
        self._database = database

    def note(self, answer: MessageId) -> tuple[Message, ...]:
        """All of it may be wrong, and of its copies in forks; set aside or not. Those that are at rest, as they are
        stored now; their conversations keep their places in the list."""
        with self._database.transaction() as db:
            rows = list(db.query(_COPIES, [answer]))
            return tuple(_noted(db, message_from_row(row)) for row in rows)


def _noted(db: sqlite_utils.Database, answer: Message) -> Message:
    known = answer.report or TurnReport(TokenReport(), PhaseTimes(), "whole")  # a fork's summary has none
    report = replace(known, doubtful=len(answer.tokens))
    db.table("messages").update(answer.id, {"report": json.dumps(report.to_json())})
    return replace(answer, report=report)
