"""Reads of conversations.db that the store is made of. All take an open database and hold no lock themselves."""

from __future__ import annotations

import time

import sqlite_utils

from app.core.errors import UserError
from app.core.records import AttachedDocument, Conversation, Message, MessageId, SearchHit
from app.core.rows import conversation_from_row, message_from_row

LAST_OF_ALL = 1 << 62
_COPIED = "role, text, ids, roles, created, state, citations, report, placement, reasoning, thought_ms, lookup"
_SEARCH_TITLES = """
SELECT c.id AS conversation, NULL AS message, highlight(title_words, 0, char(2), char(3)) AS snippet
FROM title_words JOIN conversations c ON c.rowid = title_words.rowid
WHERE title_words MATCH :query AND c.trashed IS NULL ORDER BY c.updated DESC LIMIT :limit
"""
_SEARCH_MESSAGES = """
SELECT m.conversation, m.id AS message, snippet(message_words, 0, char(2), char(3), '…', 16) AS snippet
FROM message_words JOIN messages m ON m.id = message_words.rowid JOIN conversations c ON c.id = m.conversation
WHERE message_words MATCH :query AND c.trashed IS NULL AND m.superseded IS NULL
ORDER BY rank LIMIT :limit
"""


def search(db: sqlite_utils.Database, text: str, limit: int) -> tuple[SearchHit, ...]:
    """What ConversationStore.search returns."""
    query = match_expression(text)
    if not query:
        return ()
    rows = list(db.query(_SEARCH_TITLES, {"query": query, "limit": limit}))
    rows += db.query(_SEARCH_MESSAGES, {"query": query, "limit": limit})
    return tuple(
        SearchHit(conversation(db, row["conversation"]), row["message"], row["snippet"]) for row in rows[:limit]
    )


def match_expression(text: str) -> str:
    """Every word quoted (no FTS5 syntax from the reader), the last one as a prefix: it may still be typed."""
    words = ['"' + word.replace('"', '""') + '"' for word in text.split() if any(c.isalnum() for c in word)]
    return " ".join([*words[:-1], words[-1] + "*"]) if words else ""


def conversation(db: sqlite_utils.Database, identifier: str) -> Conversation:
    for row in db.table("conversations").rows_where("id = ?", [identifier]):
        return conversation_from_row(row, documents(db, identifier))
    raise UserError("The conversation is not there.", f"No conversation has the id {identifier}.", "Choose another.")


def documents(db: sqlite_utils.Database, conversation: str) -> tuple[AttachedDocument, ...]:
    rows = db.table("conversation_documents").rows_where("conversation = ?", [conversation], order_by="place")
    return tuple(AttachedDocument(row["document"], row["attached"]) for row in rows)


def shelves(db: sqlite_utils.Database, most: int = 8) -> tuple[tuple[int, ...], ...]:
    """Ids of documents that a conversation has together, whose first question is still to be asked and would read them
    whole if it can; each set once, the most recently used first."""
    query = (
        "SELECT group_concat(document) FROM conversation_documents JOIN conversations ON conversations.id ="
        " conversation_documents.conversation WHERE trashed IS NULL AND mode IN ('auto', 'whole') AND NOT EXISTS"
        " (SELECT 1 FROM messages WHERE messages.conversation = conversations.id)"
        " GROUP BY conversations.id HAVING count(*) > 1 ORDER BY updated DESC"
    )
    found = [tuple(sorted(map(int, row[0].split(",")))) for row in db.execute(query).fetchall()]
    return tuple(dict.fromkeys(found))[:most]


def message(db: sqlite_utils.Database, identifier: int) -> Message:
    for row in db.table("messages").rows_where("id = ?", [identifier]):
        return message_from_row(row)
    raise UserError("The message is not there.", f"No message has the id {identifier}.", "Open the conversation again.")


def attach(db: sqlite_utils.Database, conversation: str, document: int) -> None:
    db.execute(
        "INSERT OR IGNORE INTO conversation_documents (conversation, document, place, attached) "
        "SELECT ?, ?, coalesce(max(place), 0) + 1, ? FROM conversation_documents WHERE conversation = ?",
        [conversation, document, time.time(), conversation],
    )


def copy_messages(db: sqlite_utils.Database, source: str, target: str, last: MessageId | None) -> None:
    """Into a conversation without messages, up to `last`, and what the engine knows of them; what was put aside stays
    behind. Turns that have left the context do so for good, except those that left together with `last`."""
    db.execute(
        f"INSERT INTO messages (conversation, cut, {_COPIED}) SELECT ?, "
        "CASE WHEN cut IS NULL OR cut = (SELECT cut FROM messages WHERE id = ?) THEN NULL ELSE -1 END, "
        f"{_COPIED} FROM messages WHERE conversation = ? AND superseded IS NULL AND id <= ? ORDER BY id",
        [target, last, source, last if last is not None else LAST_OF_ALL],
    )
    db.execute(
        "UPDATE conversations SET (tokenizer, date, computed, shifts) = (SELECT tokenizer, date, computed, "
        "CASE WHEN ? THEN '[]' ELSE shifts END FROM conversations WHERE id = ?) "
        "WHERE id = ?",
        [last is not None, source, target],
    )
