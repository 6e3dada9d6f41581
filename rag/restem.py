"""Words of documents of older libraries by the stems of their language, made from the stored text."""

from __future__ import annotations

from rag.index import records, stems
from rag.ingest import Job, Shelf
from rag.languages import Stemmer
from rag.types import Document, DocumentId

WINDOWS_A_STEP = 128


def outdated(shelf: Shelf, document_id: DocumentId | None = None) -> list[Document]:
    """Complete documents whose words were indexed before this program's stemming, oldest first. With `document_id`
    that one, or none."""
    name = shelf.embedder.name if shelf.embedder else ""
    where = "phase = 'vectors' AND stemming != ?2 AND id = coalesce(?3, id)"
    return records.documents(shelf.db, shelf.files, name, where, (stems.STEMMING, document_id))


def restem(shelf: Shelf, job: Job, document: Document) -> None:
    """Stems pages, then windows; what an interrupted call has made is passed over. Until all is there the document is
    searched as before, by its unstemmed words from the moment on that older stems have to go."""
    if document.language:
        _forget_older(shelf, document)
    stemmer = Stemmer(stems.told_language(shelf.db, document.id, document.pages))
    if stemmer.language:
        _stem(shelf, job, document, stemmer)
    with shelf.db.transaction():
        shelf.db.run(
            "UPDATE documents SET language = ?, stemming = ? WHERE id = ?",
            (stemmer.language, stems.STEMMING, document.id),
        )


def _forget_older(shelf: Shelf, document: Document) -> None:
    with shelf.db.transaction():
        stems.remove_pages(shelf.db, document.id)
        stems.remove_windows(shelf.db, document.id)
        shelf.db.run("UPDATE documents SET language = '' WHERE id = ?", (document.id,))


def _stem(shelf: Shelf, job: Job, document: Document, stemmer: Stemmer) -> None:
    windows = shelf.db.tuples("SELECT windows FROM documents WHERE id = ?", (document.id,))[0][0]
    total = document.pages + windows
    page, first = stems.stemmed(shelf.db, document.id)
    more = True
    while more:
        job.report(document.id, "words", min(page, document.pages), total)
        with shelf.db.transaction():
            more = stems.add_pages(shelf.db, document.id, stemmer)
        page += stems.PAGES_A_STEP
    while first < windows:
        job.report(document.id, "words", document.pages + first, total)
        last = min(windows, first + WINDOWS_A_STEP)
        with shelf.db.transaction():
            stems.add_windows(shelf.db, document.id, first, last, stemmer)
        first = last
