"""Reading and writing documents, pages and passages. Writers must be called inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rag.chunk import Chunk, Piece
from rag.errors import DocumentError
from rag.index import stems
from rag.index.database import Database, Row
from rag.languages import Stemmer
from rag.layout import is_listing, lists_titles, title_form
from rag.pdf.client import Contents, ExtractedPage
from rag.pdf.text import CharMap
from rag.types import CharRange, Document, DocumentId, DocumentState, Outline, PageReport, Passage

MOST_NEAR = 3  # names suggested where none is right
CHUNKER = 2  # raised when passages are cut differently: unfinished documents are then cut afresh
EXTRACTION = 3  # raised when pages or metadata come out otherwise: documents are then read anew (`rag.reread`)

DOCUMENTS = """
SELECT documents.*,
    EXISTS (SELECT 1 FROM vectors WHERE document_id = documents.id AND done >= documents.windows
            AND (embedder = ?1 OR ?1 = '')) AS embedded,
    (SELECT json_group_array(page_index) FROM pages
     WHERE document_id = documents.id AND kind IN ('scan', 'garbled')) AS unread,
    (SELECT json_group_array(name) FROM (SELECT name FROM other_names WHERE document_id = documents.id ORDER BY name))
        AS others
FROM documents
"""


def add_document(db: Database, sha256: str, name: str, contents: Contents, added: float, note: str) -> DocumentId:
    cursor = db.run(
        "INSERT INTO documents (sha256, name, file, pages, phase, chunker, stemming, extraction, added, note,"
        " metadata)"
        " VALUES (?, ?, ?, ?, 'text', ?, ?, ?, ?, ?, ?)",
        (sha256, name, f"{sha256}.pdf", contents.pages, CHUNKER, stems.STEMMING, EXTRACTION, added, note,
         json.dumps(dict(contents.metadata))),
    )  # fmt: skip
    document_id = DocumentId(int(cursor.lastrowid or 0))
    entries = [(document_id, n, e.title, e.page_index, e.level) for n, e in enumerate(contents.outline)]
    db.run_many("INSERT INTO outline VALUES (?, ?, ?, ?, ?)", entries)
    labels = [(document_id, n, label) for n, label in enumerate(contents.labels)]
    db.run_many("INSERT INTO labels VALUES (?, ?, ?)", labels)
    return document_id


def outline_titles(db: Database, document_id: DocumentId) -> frozenset[str]:
    """As `rag.layout.title_form` gives them."""
    rows = db.tuples("SELECT title FROM outline WHERE document_id = ?", (document_id,))
    return frozenset(title_form(title) for (title,) in rows) - {""}


def add_page(
    db: Database, document_id: DocumentId, page: ExtractedPage, titles: AbstractSet[str] = frozenset()
) -> None:
    """Stores a page and makes its words searchable. `titles`: `outline_titles`."""
    listing = is_listing(page.text) or lists_titles(page.text, titles)
    cursor = db.run(
        "INSERT INTO pages (document_id, page_index, characters, kind, reason, listing, text, positions)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (document_id, page.page_index, len(page.text), page.kind, page.reason, listing,
         page.text, page.positions.pack()),
    )  # fmt: skip
    if page.text:
        db.run("INSERT INTO page_words (rowid, text) VALUES (?, ?)", (cursor.lastrowid, page.text))
        db.run("INSERT INTO page_parts (rowid, text) VALUES (?, ?)", (cursor.lastrowid, page.text))


def add_chunk(
    db: Database,
    document_id: DocumentId,
    ordinal: int,
    first_window: int,
    chunk: Chunk,
    stemmer: Stemmer,
    identifier: int | None = None,
) -> int:
    """Stores a passage with its windows; returns the number of the next window. `identifier`: of a passage that it
    takes the place of."""
    ranges = [
        part for piece in chunk.pieces for part in locate(db, document_id, piece.page_index, piece.start, piece.count)
    ]
    cursor = db.run(
        "INSERT INTO passages (id, document_id, ordinal, page_index, text, heading, pieces, ranges)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (identifier, document_id, ordinal, chunk.pieces[0].page_index, chunk.text, chunk.heading,
         json.dumps([(p.page_index, p.start, p.count) for p in chunk.pieces]),
         json.dumps([(r.page_index, r.char_start, r.char_count) for r in ranges])),
    )  # fmt: skip
    windows = [
        (document_id, first_window + n, cursor.lastrowid, w.page_index, w.start, w.count)
        for n, w in enumerate(chunk.windows)
    ]
    db.run_many(
        "INSERT INTO windows (document_id, ordinal, passage_id, page_index, start, count) VALUES (?, ?, ?, ?, ?, ?)",
        windows,
    )
    last = first_window + len(windows)
    db.run(
        "INSERT INTO window_words (rowid, heading, text) SELECT id, heading, text FROM window_texts"
        " WHERE document_id = ? AND ordinal >= ? AND ordinal < ?",
        (document_id, first_window, last),
    )
    if stemmer.language:
        stems.add_windows(db, document_id, first_window, last, stemmer)
    return last


def locate(db: Database, document_id: DocumentId, page_index: int, start: int, count: int) -> list[CharRange]:
    """PDFium's ranges of `count` > 0 characters from `start` of the page's stored text, in reading order."""
    row = db.row("SELECT positions FROM pages WHERE document_id = ? AND page_index = ?", (document_id, page_index))
    assert row is not None
    return [CharRange(page_index, *span) for span in CharMap.unpack(row["positions"]).spans(start, count)]


def remove_passages(db: Database, document_id: DocumentId) -> None:
    stems.remove_windows(db, document_id)
    db.run(
        "INSERT INTO window_words (window_words, rowid, heading, text)"
        " SELECT 'delete', id, heading, text FROM window_texts WHERE document_id = ?",
        (document_id,),
    )
    db.run("DELETE FROM windows WHERE document_id = ?", (document_id,))
    db.run("DELETE FROM passages WHERE document_id = ?", (document_id,))


def remove_pages(db: Database, document_id: DocumentId, pages: Iterable[int]) -> None:
    """Takes pages out of the table and the full-text indexes."""
    chosen = (document_id, json.dumps(list(pages)))
    among = "page_index IN (SELECT value FROM json_each(?))"
    stems.remove_pages(db, document_id, among, chosen[1:])
    where = f"document_id = ? AND {among}"
    for table in ("page_words", "page_parts"):
        db.run(
            f"INSERT INTO {table} ({table}, rowid, text) SELECT 'delete', id, text FROM pages WHERE {where}"
            " AND text != ''",
            chosen,
        )
    db.run(f"DELETE FROM pages WHERE {where}", chosen)


def recognised(db: Database, document_id: DocumentId) -> dict[int, list[list[Any]]]:
    """Words of the pages that were recognised, as `rag.pdf.recognise_worker` gives them."""
    rows = db.tuples("SELECT page_index, words FROM recognised WHERE document_id = ?", (document_id,))
    return {page: json.loads(words) for page, words in rows}


def remove_document(db: Database, document_id: DocumentId) -> None:
    """Takes the document out of all tables and full-text indexes."""
    remove_passages(db, document_id)
    stems.remove_pages(db, document_id)
    for table in ("page_words", "page_parts"):
        db.run(
            f"INSERT INTO {table} ({table}, rowid, text)"
            " SELECT 'delete', id, text FROM pages WHERE document_id = ? AND text != ''",
            (document_id,),
        )
    db.run("DELETE FROM documents WHERE id = ?", (document_id,))


def documents(
    db: Database, files: Path, embedder: str, where: str = "1", values: Sequence[object] = ()
) -> list[Document]:
    """Documents that meet `where` (a condition of this program's, its values from ?2 on), oldest first."""
    rows = db.rows(f"{DOCUMENTS} WHERE {where} ORDER BY added, id", (embedder, *values))
    return [_document(row, files) for row in rows]


def _document(row: Row, files: Path) -> Document:
    return Document(
        id=DocumentId(row["id"]),
        name=row["name"],
        path=files / row["file"],
        sha256=row["sha256"],
        pages=row["pages"],
        characters=row["characters"],
        state=_state(row),
        added=row["added"],
        unreadable_pages=tuple(json.loads(row["unread"])),
        embedded=bool(row["embedded"]),
        language=row["language"],
        other_names=tuple(json.loads(row["others"])),
        note=row["note"],
        metadata=json.loads(row["metadata"]),
        extraction=row["extraction"],
    )


def add_name(db: Database, document_id: DocumentId, name: str) -> None:
    """A further name of its content; its first one is none."""
    db.run(
        "INSERT OR IGNORE INTO other_names SELECT id, ?2 FROM documents WHERE id = ?1 AND name != ?2",
        (document_id, name),
    )


def _state(row: Row) -> DocumentState:
    if row["trashed"] is not None:
        return "trashed"
    if row["phase"] != "vectors":
        return "importing"
    return "ready" if row["embedded"] else "words"


def passages(db: Database, where: str, values: Sequence[object]) -> list[Passage]:
    """Passages that meet `where` (a condition of this program's), in reading order."""
    rows = db.rows(f"SELECT * FROM passages WHERE {where} ORDER BY document_id, ordinal", values)
    return [_passage(row) for row in rows]


def _passage(row: Row) -> Passage:
    ranges = tuple(CharRange(*values) for values in json.loads(row["ranges"]))
    return Passage(row["id"], DocumentId(row["document_id"]), row["ordinal"], row["text"], row["heading"], ranges)


def passage_pieces(db: Database, passage_id: int) -> list[Piece]:
    row = db.row("SELECT pieces FROM passages WHERE id = ?", (passage_id,))
    return [Piece(*values) for values in json.loads(row["pieces"])] if row else []


def outline(db: Database, document_id: DocumentId) -> list[Outline]:
    rows = db.rows("SELECT * FROM outline WHERE document_id = ? ORDER BY ordinal", (document_id,))
    return [Outline(row["title"], row["page_index"], row["level"]) for row in rows]


def page_reports(db: Database, document_id: DocumentId) -> list[PageReport]:
    rows = db.rows(
        "SELECT page_index, label, kind, characters, reason FROM pages JOIN labels USING (document_id, page_index)"
        " WHERE document_id = ? ORDER BY page_index",
        (document_id,),
    )
    return [PageReport(**row) for row in rows]


def missing_pages(db: Database, document_id: DocumentId, pages: int) -> list[int]:
    known = db.tuples("SELECT page_index FROM pages WHERE document_id = ?", (document_id,))
    return sorted(set(range(pages)) - {index for (index,) in known})


def page_texts(db: Database, document_id: DocumentId) -> Iterable[tuple[int, str]]:
    """(page, text) in page order, read a stretch at a time so that no cursor stays open between writes."""
    last = -1
    while rows := db.tuples(
        "SELECT page_index, text FROM pages WHERE document_id = ? AND page_index > ? ORDER BY page_index LIMIT 256",
        (document_id, last),
    ):
        yield from rows
        last = rows[-1][0]


def unknown(document_id: object, names: Sequence[str] = ()) -> DocumentError:
    """`document_id`: a number, or what was taken for a name; `names`: those there are."""
    why = f"None is called “{document_id}”." if isinstance(document_id, str) else f"It has no number {document_id}."
    if isinstance(document_id, str) and (near := _near(Path(document_id).name, names)):
        why += f" There is {' and '.join(f'“{name}”' for name in near)}."
    next = "Take its file in first, or give its name as the library lists it ('pagekeep index ls')."
    return DocumentError("This document is not in the library.", why, next, "unknown_document")


def _near(wanted: str, names: Sequence[str]) -> list[str]:
    """At most three names that may be meant: such as begin like it, then such as are spelled nearly so."""
    folded = {name: name.casefold() for name in names}
    sought = wanted.casefold()
    begin = [name for name, low in folded.items() if sought and (low.startswith(sought) or low == f"{sought}.pdf")]
    alike = get_close_matches(sought, folded.values(), MOST_NEAR, 0.7) if not begin else []
    return [*begin, *(name for name, low in folded.items() if low in alike)][:MOST_NEAR]
