"""Tables of conversations.db. Migrations are numbered by their place and never change once released."""

from __future__ import annotations

import sqlite_utils

_FIRST = """
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, title TEXT NOT NULL, title_fixed INTEGER NOT NULL DEFAULT 0,
    created REAL NOT NULL, updated REAL NOT NULL, mode TEXT NOT NULL DEFAULT 'auto',
    instructions TEXT NOT NULL DEFAULT '', trashed REAL, draft TEXT NOT NULL DEFAULT '',
    tokenizer TEXT NOT NULL DEFAULT '', computed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE conversation_documents (
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    document INTEGER NOT NULL, place INTEGER NOT NULL, attached REAL NOT NULL,
    PRIMARY KEY (conversation, document)
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    role TEXT NOT NULL, text TEXT NOT NULL, ids BLOB NOT NULL, roles BLOB NOT NULL,
    created REAL NOT NULL, state TEXT NOT NULL, citations TEXT NOT NULL, report TEXT, placement TEXT NOT NULL,
    superseded REAL
);
CREATE INDEX messages_by_conversation ON messages (conversation, id);
CREATE TABLE leases (
    conversation TEXT PRIMARY KEY REFERENCES conversations(id) ON DELETE CASCADE,
    pid INTEGER NOT NULL, started REAL NOT NULL, taken REAL NOT NULL
);
"""

# Words are indexed in tables of their own; triggers keep them in step with every way of writing.
_WORDS = """
CREATE VIRTUAL TABLE message_words USING fts5(
    text, content='messages', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER message_words_insert AFTER INSERT ON messages BEGIN
    INSERT INTO message_words(rowid, text) VALUES (new.id, new.text); END;
CREATE TRIGGER message_words_delete AFTER DELETE ON messages BEGIN
    INSERT INTO message_words(message_words, rowid, text) VALUES ('delete', old.id, old.text); END;
CREATE TRIGGER message_words_update AFTER UPDATE OF text ON messages BEGIN
    INSERT INTO message_words(message_words, rowid, text) VALUES ('delete', old.id, old.text);
    INSERT INTO message_words(rowid, text) VALUES (new.id, new.text); END;
CREATE VIRTUAL TABLE title_words USING fts5(
    title, content='conversations', content_rowid='rowid', tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER title_words_insert AFTER INSERT ON conversations BEGIN
    INSERT INTO title_words(rowid, title) VALUES (new.rowid, new.title); END;
CREATE TRIGGER title_words_delete AFTER DELETE ON conversations BEGIN
    INSERT INTO title_words(title_words, rowid, title) VALUES ('delete', old.rowid, old.title); END;
CREATE TRIGGER title_words_update AFTER UPDATE OF title ON conversations BEGIN
    INSERT INTO title_words(title_words, rowid, title) VALUES ('delete', old.rowid, old.title);
    INSERT INTO title_words(rowid, title) VALUES (new.rowid, new.title); END;
"""


# What was looked up for a question, where a conversation looks, and the notes of a survey.
_LOOKUPS = """
ALTER TABLE messages ADD COLUMN lookup TEXT;
ALTER TABLE messages ADD COLUMN survey TEXT;
ALTER TABLE conversations ADD COLUMN scope TEXT NOT NULL DEFAULT '';
CREATE TABLE survey_notes (
    message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    step INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (message, step)
);
"""


def _conversations(db: sqlite_utils.Database) -> None:
    db.executescript(_FIRST)


def _search(db: sqlite_utils.Database) -> None:
    db.executescript(_WORDS)


# Reasoning beside the answers; what left the context ("cuts") and how to undo it; ranges moved in the KV state.
_CONTEXT = (
    "ALTER TABLE messages ADD COLUMN reasoning TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE messages ADD COLUMN thought_ms REAL NOT NULL DEFAULT 0",
    "ALTER TABLE messages ADD COLUMN cut INTEGER",
    "ALTER TABLE conversations ADD COLUMN shifts TEXT NOT NULL DEFAULT '[]'",
    """CREATE TABLE cuts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    made REAL NOT NULL, message INTEGER, ids BLOB, roles BLOB, placement TEXT,
    shifts TEXT NOT NULL, removal TEXT
)""",
)


def _context(db: sqlite_utils.Database) -> None:
    for statement in _CONTEXT:
        db.execute(statement)


def _lookups(db: sqlite_utils.Database) -> None:
    for statement in _LOOKUPS.strip().split(";\n"):  # executescript would commit halfway
        db.execute(statement)


# The date that a template shows: of a conversation ('' before its first turn, and of those begun without one), and of
# what all conversations on a document begin with.
_DAYS = (
    "ALTER TABLE conversations ADD COLUMN date TEXT NOT NULL DEFAULT ''",
    "CREATE TABLE document_dates (document INTEGER PRIMARY KEY, date TEXT NOT NULL)",
)


def _dates(db: sqlite_utils.Database) -> None:
    for statement in _DAYS:
        db.execute(statement)


# What the engine had computed before messages left the context, for when they come back (JSON, see cuts.py).
_BEFORE = ("ALTER TABLE cuts ADD COLUMN earlier TEXT", "ALTER TABLE messages ADD COLUMN earlier TEXT")


def _before(db: sqlite_utils.Database) -> None:
    for statement in _BEFORE:
        db.execute(statement)


# What undos took back, for `redo` (see undoing.py): `standing` is the moment of the last change that stood then.
_UNDONE = """
CREATE TABLE undone (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    standing REAL NOT NULL, what TEXT NOT NULL
)
"""


def _undone(db: sqlite_utils.Database) -> None:
    db.execute(_UNDONE)


# Changes of a history that the next turn tells of (see operations.py).
_OPERATIONS = """
CREATE TABLE operations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation TEXT NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    name TEXT NOT NULL, milliseconds REAL NOT NULL, tokens INTEGER
)
"""


def _operations(db: sqlite_utils.Database) -> None:
    db.execute(_OPERATIONS)


def _changes(db: sqlite_utils.Database) -> None:
    db.execute("ALTER TABLE operations ADD COLUMN change TEXT")


MIGRATIONS = (_conversations, _search, _context, _lookups, _dates, _before, _undone, _operations, _changes)
