"""Documents of older libraries that this program extracts otherwise: their pages are read anew from the library's copy.

Extraction 2 put lines of Hebrew and Arabic in the order in which they are read; 3 finds letters that fonts say nothing
of, tells of damaged tables, and keeps what a file says of itself. PDFium's character indices stay what they are, so
citations of the old text still mark what they marked; passages keep their numbers, by which conversations know them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import cast

from rag.chunk import Chunk
from rag.errors import DocumentError
from rag.index import records, rereads, stems
from rag.ingest import Job, Shelf, as_recognised, cut, file_note, watched
from rag.languages import Stemmer
from rag.pdf.client import ExtractedPage, Extraction
from rag.pdf.text import CharMap
from rag.sizes import plural
from rag.types import Document, DocumentId, PageKind

READ_BEFORE = "An older version read it; it is read anew in the background ('pagekeep index again' does it at once)."
NOT_ANEW = "It could not be read anew; its text stays as an older version read it."
SHOWN_LABELS = 8
PAGES_A_STEP = 128  # looked through, then kept: what a killed process does again


def outdated(shelf: Shelf, document_id: DocumentId | None = None) -> list[Document]:
    """Complete documents that were extracted before this program's way, oldest first; not all come out otherwise. With
    `document_id` that one, or none."""
    name = shelf.embedder.name if shelf.embedder else ""
    where = "phase = 'vectors' AND extraction < ?2 AND id = coalesce(?3, id)"
    return records.documents(shelf.db, shelf.files, name, where, (records.EXTRACTION, document_id))


def concerned(shelf: Shelf, document_id: DocumentId) -> bool:
    return bool(outdated(shelf, document_id))


def mark(shelf: Shelf, document_id: DocumentId) -> None:
    """Has a complete document read anew, whichever version read it."""
    with shelf.db.transaction():
        shelf.db.run("UPDATE documents SET extraction = 0 WHERE id = ?", (document_id,))
        rereads.forget(shelf.db, document_id)


def reread(shelf: Shelf, job: Job, document: Document) -> bool:
    """Reads the document anew; whether text of it came out otherwise. It is searched as before until all is there: one
    transaction changes it. Its vectors are then missing. What a killed or stopped call has read is gone on with.

    Errors: DocumentError of kind "slow" where time ran out at pages that cannot be read; the next call goes on behind
    them.
    """
    if not _look_through(shelf, job, document):
        return False
    found = list(rereads.kept(shelf.db, document.id))
    pages = [page for page in found if _differs(page, *_text(shelf, document.id, page.page_index))]
    if pages:
        job.report(document.id, "words", 0, document.pages)
    with shelf.db.transaction():
        for page in found:
            shelf.db.run(
                "UPDATE pages SET kind = ?, reason = ? WHERE document_id = ? AND page_index = ?",
                (page.kind, page.reason, document.id, page.page_index),
            )
        if pages:
            _replace(shelf, document, pages)
        shelf.db.run("UPDATE documents SET extraction = ? WHERE id = ?", (records.EXTRACTION, document.id))
        rereads.forget(shelf.db, document.id)
    return bool(pages)


def _look_through(shelf: Shelf, job: Job, document: Document) -> bool:
    """Keeps the pages that come out otherwise beside the old ones; False where another process wants it read from its
    first page on (it stays outdated)."""
    known = records.recognised(shelf.db, document.id)
    with Extraction(document.path, None, job.cancelled, limits=shelf.limits) as extraction:
        done = rereads.looked_through(shelf.db, document.id)
        if done is None:
            done = _begin(shelf, document, extraction)
        tried = takewhile(lambda page: not page.left_out, extraction.pages(range(done, document.pages)))
        pages = watched(tried, job, document, done)
        while batch := list(islice(pages, PAGES_A_STEP)):
            read = [as_recognised(page) if page.page_index in known and not page.failed else page for page in batch]
            if not _keep(shelf, document.id, read, done, len(batch)):
                return False
            done += len(batch)
    if done < document.pages:
        raise _too_slow(document, done)
    return True


def _too_slow(document: Document, done: int) -> DocumentError:
    why = f"Some of its pages take too long to read; {done:,} of {document.pages:,} pages were looked through."
    way_out = "It is gone on with at the next start, or with 'pagekeep index again'."
    return DocumentError(f"{document.name} was not read anew to its end.", why, way_out, "slow")


def _begin(shelf: Shelf, document: Document, extraction: Extraction) -> int:
    """Stores what the file says of itself; returns the first page to read."""
    metadata = json.dumps(dict(extraction.contents().metadata))
    note = document.note or file_note(document.path, document.pages)
    with shelf.db.transaction():
        shelf.db.run("UPDATE documents SET metadata = ?, note = ? WHERE id = ?", (metadata, note, document.id))
        rereads.begin(shelf.db, document.id)
    return 0


def _keep(shelf: Shelf, document_id: DocumentId, read: Sequence[ExtractedPage], first: int, count: int) -> bool:
    """False where the document's reread was ended meanwhile."""
    stored = {row[0]: row[1:] for row in _stored(shelf, document_id, first, first + count)}
    pages = [
        _as_it_is(page, *stored[page.page_index]) if page.failed else page for page in read if page.page_index in stored
    ]
    other = [page for page in pages if _changed(page, *stored[page.page_index])]
    with shelf.db.transaction():
        if rereads.looked_through(shelf.db, document_id) != first:
            return False
        rereads.keep(shelf.db, document_id, other, first + count)
    return True


def _stored(shelf: Shelf, document_id: DocumentId, first: int, end: int) -> Iterator[tuple[int, str, bytes, str, str]]:
    """(page, text, positions, kind, reason) of stored pages."""
    yield from shelf.db.tuples(
        "SELECT page_index, text, positions, kind, reason FROM pages"
        " WHERE document_id = ? AND page_index >= ? AND page_index < ?",
        (document_id, first, end),
    )


def _text(shelf: Shelf, document_id: DocumentId, page_index: int) -> tuple[str, bytes]:
    ((_, text, positions, _, _),) = _stored(shelf, document_id, page_index, page_index + 1)
    return text, positions


def _as_it_is(failed: ExtractedPage, text: str, positions: bytes, kind: str, reason: str) -> ExtractedPage:
    """The stored page, with why it was not read anew; what was said of it before stays in front."""
    told = reason if reason.endswith(NOT_ANEW) else f"{reason} {failed.reason} {NOT_ANEW}".strip()
    return replace(failed, text=text, positions=CharMap.unpack(positions), kind=cast(PageKind, kind), reason=told)


def not_anew(shelf: Shelf, document: Document) -> DocumentError | None:
    """What to tell of pages that crashed or stalled the reader when the document was read anew; None without any."""
    found = shelf.db.tuples(
        "SELECT label FROM pages JOIN labels USING (document_id, page_index)"
        " WHERE document_id = ? AND substr(reason, -length(?)) = ? ORDER BY page_index",
        (document.id, NOT_ANEW, NOT_ANEW),
    )
    if not found:
        return None
    labels = ", ".join(label for (label,) in found[:SHOWN_LABELS]) + (", …" if len(found) > SHOWN_LABELS else "")
    what = f"{plural(len(found), 'page')} of {document.name} could not be read anew."
    why = f"The PDF reader crashed or took too long ({'page' if len(found) == 1 else 'pages'} {labels})."
    return DocumentError(what, why, "'pagekeep index again' with its name tries once more.", "slow")


def _changed(page: ExtractedPage, text: str, positions: bytes, kind: str, reason: str) -> bool:
    return (page.kind, page.reason) != (kind, reason) or _differs(page, text, positions)


def _differs(page: ExtractedPage, text: str, positions: bytes) -> bool:
    return page.text != text or page.positions != CharMap.unpack(positions)


def _replace(shelf: Shelf, document: Document, pages: Sequence[ExtractedPage]) -> None:
    """Inside a transaction."""
    numbers = _passage_numbers(shelf, document.id)
    records.remove_passages(shelf.db, document.id)
    records.remove_pages(shelf.db, document.id, [page.page_index for page in pages])
    titles = records.outline_titles(shelf.db, document.id)
    for page in pages:
        records.add_page(shelf.db, document.id, page, titles)
    stemmer = Stemmer(stems.told_language(shelf.db, document.id, document.pages))
    if stemmer.language != document.language:
        stems.remove_pages(shelf.db, document.id)
    while stemmer.language and stems.add_pages(shelf.db, document.id, stemmer):
        pass
    windows = _add_passages(shelf, document.id, cut(shelf, document.id), numbers, stemmer)
    shelf.db.run("DELETE FROM vectors WHERE document_id = ?", (document.id,))
    shelf.db.run(
        "UPDATE documents SET revision = revision + 1, windows = ?2, language = ?3, stemming = ?4, chunker = ?5,"
        " characters = (SELECT sum(characters) FROM pages WHERE document_id = ?1) WHERE id = ?1",
        (document.id, windows, stemmer.language, stems.STEMMING, records.CHUNKER),
    )


def _passage_numbers(shelf: Shelf, document_id: DocumentId) -> dict[int, list[int]]:
    """Of the passages that begin on each page, the last one first."""
    numbers: dict[int, list[int]] = defaultdict(list)
    for identifier, page in shelf.db.tuples(
        "SELECT id, page_index FROM passages WHERE document_id = ? ORDER BY ordinal DESC", (document_id,)
    ):
        numbers[page].append(identifier)
    return numbers


def _add_passages(
    shelf: Shelf, document_id: DocumentId, made: Iterable[Chunk], numbers: dict[int, list[int]], stemmer: Stemmer
) -> int:
    """The number of windows. A passage takes the number of the old one in its place, if there was one."""
    window = 0
    for ordinal, chunk in enumerate(made):
        old = numbers[chunk.pieces[0].page_index]
        window = records.add_chunk(
            shelf.db, document_id, ordinal, window, chunk, stemmer, identifier=old.pop() if old else None
        )
    return window
