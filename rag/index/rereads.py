"""Pages of an older version's documents that now come out otherwise, kept until all of a document is looked through.

Writers must be called inside a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag.index.database import Database
from rag.index.records import EXTRACTION
from rag.pdf.client import ExtractedPage
from rag.pdf.text import CharMap
from rag.types import DocumentId


def looked_through(db: Database, document_id: DocumentId) -> int | None:
    """Pages that this program's extraction has been through; None: not begun."""
    rows = db.tuples("SELECT pages FROM rereads WHERE document_id = ? AND extraction = ?", (document_id, EXTRACTION))
    return int(rows[0][0]) if rows else None


def begin(db: Database, document_id: DocumentId) -> None:
    """What another version has begun is forgotten."""
    forget(db, document_id)
    db.run("INSERT INTO rereads VALUES (?, ?, 0)", (document_id, EXTRACTION))


def forget(db: Database, document_id: DocumentId) -> None:
    db.run("DELETE FROM rereads WHERE document_id = ?", (document_id,))


def keep(db: Database, document_id: DocumentId, pages: Sequence[ExtractedPage], looked: int) -> None:
    """`pages` come out otherwise; `looked` pages have been through in all."""
    rows = [(document_id, p.page_index, p.kind, p.reason, p.text, p.positions.pack()) for p in pages]
    db.run_many("INSERT OR REPLACE INTO reread_pages VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.run("UPDATE rereads SET pages = ? WHERE document_id = ?", (looked, document_id))


def kept(db: Database, document_id: DocumentId) -> Iterator[ExtractedPage]:
    rows = db.tuples(
        "SELECT page_index, text, positions, kind, reason FROM reread_pages WHERE document_id = ? ORDER BY page_index",
        (document_id,),
    )
    for page, text, positions, kind, reason in rows:
        yield ExtractedPage(page, text, CharMap.unpack(positions), kind, reason)
