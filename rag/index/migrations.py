"""The database's schema, as numbered steps. A step is never changed once it has been released; add another."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rag.errors import DocumentError
from rag.index.readonly import connect_read_only, only_readable

FIRST = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sha256 TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    file TEXT NOT NULL,
    pages INTEGER NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN ('text', 'words', 'vectors')),
    chunker INTEGER NOT NULL,
    characters INTEGER NOT NULL DEFAULT 0,
    windows INTEGER NOT NULL DEFAULT 0,
    added REAL NOT NULL,
    trashed REAL
);
CREATE TABLE vectors (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    embedder TEXT NOT NULL,
    done INTEGER NOT NULL,
    PRIMARY KEY (document_id, embedder)
) WITHOUT ROWID;
CREATE TABLE outline (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    title TEXT NOT NULL,
    page_index INTEGER,
    level INTEGER NOT NULL,
    PRIMARY KEY (document_id, ordinal)
) WITHOUT ROWID;
CREATE TABLE labels (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    page_index INTEGER NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (document_id, page_index)
) WITHOUT ROWID;
CREATE TABLE pages (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    page_index INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    listing INTEGER NOT NULL,
    text TEXT NOT NULL,
    positions BLOB NOT NULL,
    UNIQUE (document_id, page_index)
);
CREATE INDEX pages_unread ON pages (document_id, page_index) WHERE kind IN ('scan', 'garbled');
CREATE INDEX pages_listing ON pages (document_id, page_index) WHERE listing = 1;
CREATE TABLE passages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    page_index INTEGER NOT NULL,
    text TEXT NOT NULL,
    heading TEXT NOT NULL,
    pieces TEXT NOT NULL,
    ranges TEXT NOT NULL,
    UNIQUE (document_id, ordinal)
);
CREATE TABLE windows (
    id INTEGER PRIMARY KEY,
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    passage_id INTEGER NOT NULL REFERENCES passages(id) ON DELETE CASCADE,
    page_index INTEGER NOT NULL,
    start INTEGER NOT NULL,
    count INTEGER NOT NULL,
    UNIQUE (document_id, ordinal)
);
CREATE INDEX windows_by_passage ON windows (passage_id);
CREATE VIEW window_texts AS
    SELECT windows.id AS id, windows.document_id AS document_id, windows.ordinal AS ordinal,
           passages.heading AS heading, substr(passages.text, windows.start + 1, windows.count) AS text
    FROM windows JOIN passages ON passages.id = windows.passage_id;
CREATE VIRTUAL TABLE page_words USING fts5(
    text, content='pages', content_rowid='id', tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE page_parts USING fts5(
    text, content='pages', content_rowid='id', tokenize="trigram");
CREATE VIRTUAL TABLE window_words USING fts5(
    heading, text, content='window_texts', content_rowid='id', tokenize="porter unicode61 remove_diacritics 2");
"""

RECOGNISED = """
CREATE TABLE recognised (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    page_index INTEGER NOT NULL,
    words TEXT NOT NULL,
    PRIMARY KEY (document_id, page_index)
) WITHOUT ROWID;
"""

NOTES = "ALTER TABLE documents ADD COLUMN note TEXT NOT NULL DEFAULT '';"

COLLECTIONS = """
CREATE TABLE collections (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL COLLATE NOCASE UNIQUE,
    folder TEXT
);
CREATE TABLE collection_documents (
    collection_id INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    PRIMARY KEY (collection_id, document_id)
) WITHOUT ROWID;
CREATE TABLE followed_files (
    collection_id INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    document_id INTEGER REFERENCES documents(id) ON DELETE SET NULL,
    error TEXT NOT NULL,
    PRIMARY KEY (collection_id, path)
) WITHOUT ROWID;
"""

STEMS = """
ALTER TABLE documents ADD COLUMN language TEXT NOT NULL DEFAULT '';
CREATE VIRTUAL TABLE page_stems USING fts5(text, tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE window_stems USING fts5(heading, text, tokenize="unicode61 remove_diacritics 2");
"""

RESTEMMED = """
ALTER TABLE documents ADD COLUMN stemming INTEGER NOT NULL DEFAULT 0;
UPDATE documents SET stemming = 1 WHERE language != '';
"""

BY_PAGE = "CREATE INDEX windows_by_page ON windows (document_id, page_index, ordinal);"

EXTRACTIONS = "ALTER TABLE documents ADD COLUMN extraction INTEGER NOT NULL DEFAULT 1;"

NAMES = """
CREATE TABLE other_names (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (document_id, name)
) WITHOUT ROWID;
ALTER TABLE documents ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
"""

REREADS = """
CREATE TABLE rereads (
    document_id INTEGER PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE,
    extraction INTEGER NOT NULL,
    pages INTEGER NOT NULL
);
CREATE TABLE reread_pages (
    document_id INTEGER NOT NULL REFERENCES rereads(document_id) ON DELETE CASCADE,
    page_index INTEGER NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    text TEXT NOT NULL,
    positions BLOB NOT NULL,
    PRIMARY KEY (document_id, page_index)
) WITHOUT ROWID;
"""

REVISIONS = "ALTER TABLE documents ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;"

WAIT_S = 30.0
STEPS: tuple[str, ...] = (
    FIRST, RECOGNISED, NOTES, COLLECTIONS, STEMS, RESTEMMED, BY_PAGE, EXTRACTIONS, NAMES, REREADS, REVISIONS,
)  # fmt: skip


def migrate(path: Path, steps: Sequence[str] = STEPS) -> None:
    """Brings the database at `path` to the newest schema: each step in a transaction of its own, a copy first.

    The copy is `<name>.before-<version>` beside it. Errors: DocumentError when a newer program wrote it, or when it
    needs a step and cannot be written.
    """
    if only_readable(path):
        return _require_newest(path, len(steps))
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        if _version(connection) == len(steps):
            return
        _use_wal(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            _run_steps(connection, path, steps)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait for others while the mode is changed, so this does."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _run_steps(connection: sqlite3.Connection, path: Path, steps: Sequence[str]) -> None:
    """Runs what is missing; the connection holds the write lock, so only one process does a step."""
    version = _version(connection)
    if version > len(steps):
        why = f"{path} has version {version}, this program knows {len(steps)}."
        raise DocumentError("The library was made by a newer Pagekeep.", why, "Install the newer one.", "library")
    if 0 < version < len(steps):
        _copy(path, path.with_name(f"{path.name}.before-{len(steps)}"))
    while version < len(steps):
        for statement in _statements(steps[version]):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version + 1:d}")
        connection.execute("COMMIT")
        connection.execute("BEGIN IMMEDIATE")
        version = _version(connection)  # another process may have gone on between the two transactions
    connection.execute("ROLLBACK")


def _require_newest(path: Path, newest: int) -> None:
    with closing(connect_read_only(path)) as connection:
        version = _version(connection)
    if version != newest:
        why = f"{path} has version {version}, this program needs {newest}, and the folder cannot be written."
        raise DocumentError("The library cannot be brought up to date.", why, "Check the folder's rights.", "library")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _copy(path: Path, target: Path) -> None:
    """A consistent copy of what is committed, readable by its owner only."""
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)


def _statements(script: str) -> list[str]:
    """Statements of a script; `executescript` would commit the transaction."""
    statements: list[str] = []
    held = ""
    for line in script.splitlines():
        held += line + "\n"
        if sqlite3.complete_statement(held):
            statements.append(held)
            held = ""
    return statements
