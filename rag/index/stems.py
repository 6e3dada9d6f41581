"""Stemmed words of documents in other languages than English, in full-text tables of their own.

They keep what was indexed, so that a row can be taken out whatever the stemmer makes of its text by then. Writers
must be called inside a transaction.
"""

from __future__ import annotations

from rag.index.database import Database
from rag.languages import Stemmer, language_of
from rag.types import DocumentId

STEMMING = 3  # raised when words are stemmed differently: documents are then stemmed anew (`rag.restem`)
SAMPLED_PAGES = 64
PAGES_A_STEP = 64


def told_language(db: Database, document_id: DocumentId, pages: int) -> str:
    """The document's language, from pages spread over it."""
    rows = db.tuples(
        "SELECT text FROM pages WHERE document_id = ? AND page_index % ? = 0 AND text != ''",
        (document_id, max(1, pages // SAMPLED_PAGES)),
    )
    return language_of(text for (text,) in rows)


def add_pages(db: Database, document_id: DocumentId, stemmer: Stemmer) -> bool:
    """Stems the next pages that lack it. False when there are no more."""
    rows = db.tuples(
        "SELECT id, text FROM pages WHERE document_id = ? AND text != ''"
        " AND NOT EXISTS (SELECT 1 FROM page_stems WHERE page_stems.rowid = pages.id)"
        " ORDER BY page_index LIMIT ?",
        (document_id, PAGES_A_STEP),
    )
    db.run_many("INSERT INTO page_stems (rowid, text) VALUES (?, ?)", [(page, stemmer(text)) for page, text in rows])
    return bool(rows)


def stemmed(db: Database, document_id: DocumentId) -> tuple[int, int]:
    """How many pages and windows have their stems."""
    pages, windows = db.tuples(
        "SELECT (SELECT count(*) FROM pages JOIN page_stems ON page_stems.rowid = pages.id WHERE document_id = ?1),"
        " (SELECT count(*) FROM windows JOIN window_stems ON window_stems.rowid = windows.id WHERE document_id = ?1)",
        (document_id,),
    )[0]
    return pages, windows


def add_windows(db: Database, document_id: DocumentId, first: int, last: int, stemmer: Stemmer) -> None:
    """Stems windows `first` to before `last`."""
    rows = db.tuples(
        "SELECT id, heading, text FROM window_texts WHERE document_id = ? AND ordinal >= ? AND ordinal < ?",
        (document_id, first, last),
    )
    stemmed = [(window, stemmer(heading), stemmer(text)) for window, heading, text in rows]
    db.run_many("INSERT INTO window_stems (rowid, heading, text) VALUES (?, ?, ?)", stemmed)


def remove_pages(db: Database, document_id: DocumentId, where: str = "1", values: tuple[object, ...] = ()) -> None:
    """Before the pages themselves. `where`: a condition of this program's on `pages`."""
    chosen = f"SELECT id FROM pages WHERE document_id = ? AND {where}"
    db.run(f"DELETE FROM page_stems WHERE rowid IN ({chosen})", (document_id, *values))


def remove_windows(db: Database, document_id: DocumentId) -> None:
    """Before the windows themselves."""
    db.run("DELETE FROM window_stems WHERE rowid IN (SELECT id FROM windows WHERE document_id = ?)", (document_id,))
