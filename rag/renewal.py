"""Documents that an older version read or indexed are brought up to date, each by itself; lost copies put back."""

from __future__ import annotations

from pathlib import Path

from rag import ingest, reread, restem
from rag.errors import DocumentError
from rag.index.locks import exclusive
from rag.ingest import Job, Shelf
from rag.types import Document, DocumentId, Renewed


def outdated(shelf: Shelf) -> list[Document]:
    """Oldest first."""
    found = {document.id: document for document in (*reread.outdated(shelf), *restem.outdated(shelf))}
    return sorted(found.values(), key=lambda document: (document.added, document.id))


def mark(shelf: Shelf, document_id: DocumentId) -> None:
    """Has it read anew, whichever version read it."""
    reread.mark(shelf, document_id)


def renew(shelf: Shelf, job: Job, document_id: DocumentId) -> Renewed:
    """Nothing where another process did it, or it was removed. Its words are brought up to date also where its file
    cannot be read any more."""
    made = _reread(shelf, job, document_id)
    found = restem.outdated(shelf, document_id)
    for old in found:
        restem.restem(shelf, job, old)
    return made + Renewed(words=len(found))


def _reread(shelf: Shelf, job: Job, document_id: DocumentId) -> Renewed:
    renewed = Renewed()
    try:
        for old in reread.outdated(shelf, document_id):
            changed = reread.reread(shelf, job, old)
            failed = reread.not_anew(shelf, old)
            renewed += Renewed(int(changed), (document_id,) if changed else (), (failed,) if failed else ())
    except DocumentError as error:
        if error.kind in ("no_space", "library"):
            raise
        return Renewed(failed=(error,))
    return renewed


def put_back(shelf: Shelf, job: Job, known: Document | None, lock: Path) -> None:
    """The library's copy of a known file, where it is gone; what was read of it stays."""
    if known is not None and not known.path.exists():
        with exclusive(lock, job.cancelled):
            ingest.store_copy(shelf, job)
