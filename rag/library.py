"""The library: PDFs on one shelf, searchable by words and by meaning."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

from rag import ingest, renewal, retrieve
from rag import recognise as recognition
from rag.collections import Collections
from rag.errors import DocumentError, IntakeCancelled
from rag.index import records
from rag.index.database import Database, private_folder
from rag.index.locks import exclusive, is_held
from rag.index.vectors import VectorFiles
from rag.ingest import Job, Shelf
from rag.pdf import inspect
from rag.pdf.client import Limits
from rag.protocols import Cancelled, Embedder, OnProgress
from rag.types import Document, DocumentId, Hit, IngestProgress, Renewed
from rag.window_vectors import CompletionOrder, Portions, embed_windows, incomplete

WAITING = ("no_space", "library")  # errors that say nothing about the file: its import can be gone on with
VectorUse = Literal["wait", "if_loaded", "never"]


def _ignore(progress: IngestProgress) -> None:
    """For callers who do not watch."""


def _never() -> bool:
    return False


class Library(Collections):
    """A folder with the PDFs, their text, index and vectors; for its owner only (0700, files 0600).

    Usable from several threads and several processes at once. Close it after use.

    Args:
        embedder: makes the vectors; without one words alone are searched, and `embed_missing` can be called by a
            later library that has one.
    """

    def __init__(self, folder: Path, embedder: Embedder | None = None, limits: Limits | None = None) -> None:
        self.folder = private_folder(folder)
        self._locks = private_folder(folder / "locks")
        db = Database(folder / "library.sqlite")
        vectors = VectorFiles(private_folder(folder / "vectors"), db)
        self._shelf = Shelf(db, private_folder(folder / "files"), vectors, embedder, limits or Limits())
        self._portions = Portions()

    @property
    def embedder(self) -> Embedder | None:
        return self._shelf.embedder

    def close(self) -> None:
        """Ends all use: no other method may be called after it, in any thread."""
        self._shelf.db.close()

    # Intake

    def add(
        self,
        path: Path,
        on_progress: OnProgress | None = None,
        cancelled: Cancelled | None = None,
        password: str | None = None,
    ) -> Document:
        """Takes a PDF in and returns when it is complete; a file already there is returned at once, and is found by
        its new name too.

        A killed or cancelled import is gone on with when the file, or the library's copy of it, is added again. A copy
        that is gone is put back, a trashed document restored. Of a file that needs a password an unprotected copy is
        kept. Callbacks come on the calling thread.

        Errors: DocumentError (nothing is left in the library), IntakeCancelled (what was read is kept).
        """
        own = self._documents("file = ?2", path.name) if path.parent == self._shelf.files else []
        if own:
            return self._complete(self._job(own[0], on_progress, cancelled))
        inspect.check_is_pdf(path)
        cancelled = cancelled or _never
        job = Job(path, ingest.file_hash(path, cancelled), password, on_progress or _ignore, cancelled)
        renewal.put_back(self._shelf, job, self._by_hash(job.sha256), self._lock(job.sha256))
        document = self._complete(job)
        if path.name == document.name or path.name in document.other_names:
            return document
        with self._shelf.db.transaction():
            records.add_name(self._shelf.db, document.id, path.name)
        return self.document(document.id)

    def recognise(
        self,
        document_id: DocumentId,
        pages: Sequence[int] | None = None,
        on_progress: OnProgress | None = None,
        cancelled: Cancelled | None = None,
    ) -> Document:
        """Reads scanned pages (6 s each on a calm core) and takes the document in anew with their text. The stored
        copy is another file afterwards: its citations are marked like those of any text.

        Args:
            pages: None for all scans and pages whose letters mean nothing.

        Errors: DocumentError of kind "recognition", IntakeCancelled (pages that were read are kept).
        """
        document = self.document(document_id)
        job = self._job(document, on_progress, cancelled)
        with exclusive(self._lock(document.sha256), job.cancelled):
            wanted = sorted(set(pages)) if pages is not None else list(document.unreadable_pages)
            if wanted:
                recognition.recognise(self._shelf, job, document, wanted)
                self._finish(job, document_id)
        return self.document(document_id)

    def embed_missing(
        self,
        on_progress: OnProgress | None = None,
        cancelled: Cancelled | None = None,
        first: Sequence[DocumentId] = (),
    ) -> None:
        """Completes every document that is not in the trash, imports and vectors; see `CompletionOrder`."""
        for document in (order := CompletionOrder(self.documents, first)):
            gives_way = partial(order.give_way, document)
            self._complete(replace(self._job(document, on_progress, cancelled), gives_way=gives_way))

    def embed(
        self, documents: Sequence[DocumentId], on_progress: OnProgress | None = None, cancelled: Cancelled | None = None
    ) -> None:
        """Completes these, where something is missing. Errors: IntakeCancelled (what was made is kept)."""
        for document in filter(incomplete, map(self.document, documents)):
            self._complete(self._job(document, on_progress, cancelled))

    def outdated(self) -> list[Document]:
        """Documents of which an older version read the text or indexed the words; they are searched as they were."""
        return renewal.outdated(self._shelf)

    def index_words(self, on_progress: OnProgress | None = None, cancelled: Cancelled | None = None) -> Renewed:
        """Brings `outdated` documents up to date: metadata, words, and text that now comes out otherwise. One that
        cannot be read does not keep the others from it.

        Errors: IntakeCancelled (what was made is kept), DocumentError where nothing can be written.
        """
        renewed = Renewed()
        for document in self.outdated():
            job = self._job(document, on_progress, cancelled)
            with exclusive(self._lock(document.sha256), job.cancelled):
                renewed += renewal.renew(self._shelf, job, document.id)
            job.on_progress(IngestProgress(job.path, document.id, "done", 1, 1))
        return renewed

    def read_again(self, documents: Sequence[DocumentId]) -> None:
        """Has `index_words` read complete documents anew; waits for who holds one. Errors: as `document`."""
        for document in [self.document(one) for one in documents]:
            with exclusive(self._lock(document.sha256), _never):
                renewal.mark(self._shelf, document.id)

    def _job(self, document: Document, on_progress: OnProgress | None, cancelled: Cancelled | None) -> Job:
        return Job(document.path, document.sha256, None, on_progress or _ignore, cancelled or _never)

    def _complete(self, job: Job) -> Document:
        """Brings the job's document to completion; at once when it is, or when its words can be searched and
        somebody else is making its vectors."""
        document = self._by_hash(job.sha256)
        if document is not None and (document.state == "ready" or not self._vectors_wanted(document)):
            job.on_progress(IngestProgress(job.path, document.id, "done", 1, 1))
            return document
        try:
            with exclusive(self._lock(job.sha256), lambda: job.cancelled() or self._usable(job.sha256)):
                return self._locked_completion(job)
        except IntakeCancelled:
            document = self._by_hash(job.sha256)
            if job.cancelled() or document is None:
                raise
            return document

    def _locked_completion(self, job: Job) -> Document:
        document = self._by_hash(job.sha256)
        document_id = ingest.take_in(self._shelf, job) if document is None else document.id
        self.restore(document_id)
        try:
            self._finish(job, document_id)
        except DocumentError as error:
            if document is None and error.kind not in WAITING and self._phase(document_id) == "text":
                ingest.give_up(self._shelf, self.document(document_id))
            raise
        job.on_progress(IngestProgress(job.path, document_id, "done", 1, 1))
        return self.document(document_id)

    def _vectors_wanted(self, document: Document) -> bool:
        return document.state != "words" or self._shelf.embedder is not None

    def _usable(self, sha256: str) -> bool:
        document = self._by_hash(sha256)
        return document is not None and document.state in ("words", "ready")

    def _finish(self, job: Job, document_id: DocumentId) -> None:
        for phase, step in (("text", ingest.read_text), ("words", ingest.index_words)):
            if self._phase(document_id) == phase:
                step(self._shelf, job, self.document(document_id))
        document = self.document(document_id)
        if not document.embedded:
            embed_windows(self._shelf, job, document, self._portions)

    def _phase(self, document_id: DocumentId) -> str:
        return str(self._shelf.db.rows("SELECT phase FROM documents WHERE id = ?", (document_id,))[0]["phase"])

    def _lock(self, sha256: str) -> Path:
        return self._locks / f"{sha256}.lock"

    # Catalogue

    def find(self, key: str | Path) -> Document:
        """A document by one of its names, by path of the original or the copy, or by SHA-256 (its first 8 digits or
        more). Errors: DocumentError of kind "unknown_document", with names that are near."""
        text = str(key)
        found = self._named(text)
        if not found and Path(text).is_file():
            found = self._documents("sha256 = ?2", ingest.file_hash(Path(text), _never))
        if not found and len(text) >= 8:
            found = self._documents("substr(sha256, 1, length(?2)) = ?2", text.lower())
        if not found:
            found = self._named(Path(text).name)
        if not found:
            raise records.unknown(text, [name for d in self.documents() for name in (d.name, *d.other_names)])
        return found[-1]

    def _named(self, name: str) -> list[Document]:
        """Documents of that name, else those that were added again under it; none from the trash."""
        among = "id IN (SELECT document_id FROM other_names WHERE name = ?2)"
        return self._documents("name = ?2 AND trashed IS NULL", name) or self._documents(
            f"{among} AND trashed IS NULL", name
        )

    def is_being_read(self, document: Document) -> bool:
        """Whether this or another process takes it in at this moment."""
        return is_held(self._lock(document.sha256))

    def trash(self, document_id: DocumentId) -> None:
        """Takes the document out of search; `restore` brings it back as it was."""
        self._set_trashed(document_id, time.time())

    def restore(self, document_id: DocumentId) -> None:
        self._set_trashed(document_id, None)

    def purge(self, document_id: DocumentId) -> None:
        """Removes the document with everything made from it. Waits for an import of it: cancel that first."""
        document = self.document(document_id)
        with exclusive(self._lock(document.sha256), _never):
            with self._shelf.db.transaction():
                records.remove_document(self._shelf.db, document_id)
            self._shelf.vectors.remove(document.sha256)
            for copy in self._shelf.files.glob(f"{document.sha256}.*pdf"):
                copy.unlink(missing_ok=True)
            with suppress(PermissionError):  # Windows keeps open files
                self._lock(document.sha256).unlink(missing_ok=True)

    def _by_hash(self, sha256: str) -> Document | None:
        found = self._documents("sha256 = ?2", sha256)
        return found[0] if found else None

    def _set_trashed(self, document_id: DocumentId, when: float | None) -> None:
        with self._shelf.db.transaction():
            self._shelf.db.run("UPDATE documents SET trashed = ? WHERE id = ?", (when, document_id))

    # Search

    def search(
        self,
        query: str,
        documents: Sequence[DocumentId] | None = None,
        top: int = 10,
        vectors: VectorUse = "wait",
        pages: Mapping[DocumentId, Sequence[int]] | None = None,
    ) -> list[Hit]:
        """The passages that answer the question best, one per page, best first.

        Args:
            documents: searched ones; None for all that are not in the trash.
            vectors: "wait" loads the embedder if need be (seconds), "if_loaded" answers by words alone until it
                is, "never" always does.
            pages: of a document, when only a chapter or some pages of it are searched (see `rag.scope`).
        """
        searched = [d for d in self.documents(include_trashed=documents is not None) if _wanted(d, documents)]
        embedder = self._shelf.embedder
        if vectors == "never" or (vectors == "if_loaded" and embedder and not embedder.loaded):
            embedder = None
        source = retrieve.Source(self._shelf.db, self._shelf.vectors, embedder)
        found = retrieve.search(source, query, searched, top, pages)
        return [replace(hit, page_label=self.page_label(hit.document_id, hit.page_index)) for hit in found]


def _wanted(document: Document, chosen: Sequence[DocumentId] | None) -> bool:
    return chosen is None or document.id in chosen
