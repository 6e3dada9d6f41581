"""Text of older libraries that this program extracts otherwise: such pages are read anew from the library's copy.

Extraction 2 puts lines of Hebrew and Arabic in the order in which they are read. PDFium's character indices stay what
they are, so citations of the old text still mark what they marked; passages keep their numbers, by which conversations
know them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from rag.chunk import Chunk
from rag.index import records, stems
from rag.ingest import Job, Shelf, as_recognised, cut
from rag.languages import Stemmer
from rag.pdf.client import ExtractedPage, Extraction
from rag.sentences import RIGHT_TO_LEFT
from rag.types import Document, DocumentId

READ_BEFORE = (
    "Lines that run from right to left were read by an older version; they are put in order in the background."
)


def outdated(shelf: Shelf, document_id: DocumentId | None = None) -> list[Document]:
    """Complete documents that were extracted before this program's way, oldest first; not all have such lines. With
    `document_id` that one, or none."""
    name = shelf.embedder.name if shelf.embedder else ""
    where = "phase = 'vectors' AND extraction < ?2 AND id = coalesce(?3, id)"
    return records.documents(shelf.db, shelf.files, name, where, (records.EXTRACTION, document_id))


def concerned(shelf: Shelf, document_id: DocumentId) -> bool:
    """Whether it is one of them and has such lines."""
    old = shelf.db.tuples("SELECT 1 FROM documents WHERE id = ? AND extraction < ?", (document_id, records.EXTRACTION))
    return bool(old) and bool(_wanted(shelf, document_id))


def reread(shelf: Shelf, job: Job, document: Document) -> bool:
    """Reads the document's pages with such lines anew; whether any came out otherwise. It is searched as before until
    all is there: one transaction changes it. Its vectors are then missing."""
    before = _wanted(shelf, document.id)
    pages = [page for page in _read(shelf, job, document, list(before)) if page.text != before[page.page_index]]
    if pages:
        job.report(document.id, "words", 0, document.pages)
    with shelf.db.transaction():
        if pages:
            _replace(shelf, document, pages)
        now = (records.EXTRACTION, document.id)
        shelf.db.run("UPDATE documents SET extraction = ? WHERE id = ?", now)
    return bool(pages)


def _wanted(shelf: Shelf, document_id: DocumentId) -> dict[int, str]:
    """Pages with letters that run from the right, and their text as it is stored."""
    texts = records.page_texts(shelf.db, document_id)
    return {page: text for page, text in texts if not text.isascii() and RIGHT_TO_LEFT.search(text)}


def _read(shelf: Shelf, job: Job, document: Document, wanted: Sequence[int]) -> list[ExtractedPage]:
    """The pages that could be read."""
    found: list[ExtractedPage] = []
    if not wanted:
        return found
    known = records.recognised(shelf.db, document.id)
    with Extraction(document.path, None, job.cancelled, limits=shelf.limits) as extraction:
        for count, page in enumerate(extraction.pages(wanted), 1):
            job.report(document.id, "text", count, len(wanted))
            if not page.failed:
                found.append(as_recognised(page) if page.page_index in known else page)
    return found


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
        "UPDATE documents SET windows = ?2, language = ?3, stemming = ?4, chunker = ?5,"
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
