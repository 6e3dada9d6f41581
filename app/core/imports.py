"""Importing documents: words first, so that questions can be asked soon; vectors behind them.

The first import fetches the embedder when it is missing. Without it the words are searched, and the reader is
told.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from app.core.embedding import Shelves
from app.core.errors import Cancelled, UserError, as_user_error
from app.core.events import (
    DocumentReady,
    FetchDone,
    FetchFailed,
    FetchProgress,
    ImportCancelled,
    ImportDone,
    ImportFailed,
    ImportProgress,
    ImportQueued,
    IndexingEnded,
    JobId,
    Notice,
    WorkspaceEvent,
)
from app.core.jobs import Job, JobThread
from app.core.pace import Pace
from app.core.settings import Settings
from rag.errors import IntakeCancelled
from rag.protocols import OnProgress
from rag.types import Document, IngestProgress

log = logging.getLogger(__name__)
Done = Callable[[Document], None]
Failed = Callable[[UserError], None]
EMBEDDER_NAME = "search by meaning"


class Imports:
    """Two threads: one takes documents in, the other fetches the embedder and makes vectors."""

    def __init__(
        self,
        shelves: Shelves,
        settings: Callable[[], Settings],
        emit: Callable[[WorkspaceEvent], None],
        with_vectors: bool = True,
        answering: Callable[[], bool] = lambda: False,
    ) -> None:
        """`answering`: a turn runs; words then take a small share of the machine. Vectors do anyway: their threads have
        the lowest priority."""
        self._shelves = shelves
        self._settings = settings
        self._emit = emit
        self._with_vectors = with_vectors
        self._answering = answering
        self._intake = JobThread("import")
        self._vectors = JobThread("vectors")
        self._taking_in = False
        self._fetching = False
        self._beginning = threading.Lock()
        self._waiting: JobId | None = None  # makes the vectors of all that is taken in until it begins

    def submit(self, path: Path, password: str | None, done: Done | None = None, failed: Failed | None = None) -> JobId:
        """`done` is called with the document before ImportDone is sent, `failed` with the error before ImportFailed."""
        job = self._intake.submit(lambda job: self._import(job, path, password, done, failed))
        self._emit(ImportQueued(job, path))
        return job

    @property
    def at_work(self) -> bool:
        """Something is being indexed; reading scans and fetching, which may take hours, do not count."""
        return self._taking_in or (self._vectors.busy and not self._fetching)

    def cancel(self, job: JobId) -> None:
        """Who stops the making of vectors does not mean those of one document: what waits behind it is stopped, too."""
        self._intake.cancel(job)
        with self._beginning:
            if self._vectors.cancel(job) and self._waiting is not None:
                self._vectors.cancel(self._waiting)
                self._waiting = None

    def resume(self) -> None:
        """Goes on with imports that a crash or a quit cut short, with what an older version read, and with missing
        vectors."""
        for document in self._shelves.library().documents():
            if document.state == "importing":
                self.submit(document.path, None)
        self.index_words()
        self.make_vectors()

    def index_words(self) -> JobId | None:
        """Brings documents that an older version read or indexed up to date; None when there is nothing to do."""
        if not self._shelves.library().outdated():
            return None
        return self._vectors.submit(lambda job: self._ending(job, self._index_words))

    def make_vectors(self) -> JobId | None:
        """Embeds what has no vectors yet, behind everything else; None when there is nothing to do."""
        missing = [d for d in self._shelves.library().documents() if not d.embedded]
        if not missing or not self._with_vectors:
            return None
        with self._beginning:
            if self._waiting is None:
                self._waiting = self._vectors.submit(lambda job: self._ending(job, self._embed))
            return self._waiting

    def close(self, timeout: float) -> None:
        self._intake.close(timeout)
        self._vectors.close(timeout)

    # --- on the worker threads ------------------------------------------------------------------------
    def _import(self, job: Job, path: Path, password: str | None, done: Done | None, failed: Failed | None) -> None:
        self._taking_in = True
        try:
            document = self._take_in(job, path, password, done)
        except (IntakeCancelled, Cancelled):
            self._emit(ImportCancelled(job.id, path))
        except Exception as error:
            log.info("import failed: %s", type(error).__name__)
            if failed is not None:
                failed(as_user_error(error))
            self._emit(ImportFailed(job.id, path, as_user_error(error)))
        else:
            self._emit(document)
            self.make_vectors()
        finally:
            self._taking_in = False

    def recognise(self, document: Document, pages: Sequence[int] | None) -> JobId:
        """Reads scanned pages (None: all of them)."""
        job = self._intake.submit(lambda job: self._recognise(job, document, pages))
        self._emit(ImportQueued(job, document.path))
        return job

    def _recognise(self, job: Job, document: Document, pages: Sequence[int] | None) -> None:
        """Words first, as with any import; vectors follow."""

        def report(progress: IngestProgress) -> None:
            self._emit(ImportProgress(job.id, progress))

        try:
            library = self._shelves.words_library()
            library.recognise(document.id, pages, report, job.cancelled)
            self._emit(ImportDone(job.id, self._shelves.library().document(document.id)))
            self.make_vectors()
        except (IntakeCancelled, Cancelled):
            self._emit(ImportCancelled(job.id, document.path))
        except Exception as error:
            log.info("scans could not be read: %s", type(error).__name__)
            self._emit(ImportFailed(job.id, document.path, as_user_error(error)))

    def _take_in(self, job: Job, path: Path, password: str | None, done: Done | None) -> ImportDone:
        library = self._shelves.words_library()
        before = {d.id for d in library.documents() if d.state != "importing"}
        document = library.add(path, self._reporting(job), job.cancelled, password=password)
        document = self._shelves.library().document(document.id)
        if done is not None:
            done(document)
        return ImportDone(job.id, document, known=document.id in before)

    def _index_words(self, job: Job) -> None:
        try:
            renewed = self._shelves.library().index_words(self._reporting(job), job.cancelled)
            for error in renewed.failed:
                self._emit(Notice(f"{error.what} Its text stays as an older version read it.", error.why, error.next))
            self.make_vectors()
        except (IntakeCancelled, Cancelled):
            log.info("indexing words anew was stopped")
        except Exception as error:
            told = as_user_error(error)
            log.info("words were not indexed anew: %s", type(error).__name__)
            self._emit(Notice("Some documents are searched as an older version indexed them.", told.why, told.next))

    def _ending(self, job: Job, run: Callable[[Job], None]) -> None:
        with self._beginning:
            if job.id == self._waiting:
                self._waiting = None
        try:
            if not job.cancelled():
                run(job)
        finally:
            self._emit(IndexingEnded(job.id, job.cancelled()))

    def _embed(self, job: Job) -> None:
        try:
            self._have_embedder(job)
            self._shelves.library().embed_missing(self._embedding(job), job.cancelled)
        except (IntakeCancelled, Cancelled):
            log.info("making vectors was stopped")
        except Exception as error:
            told = as_user_error(error)
            log.info("no vectors: %s", type(error).__name__, exc_info=not hasattr(error, "what"))
            self._emit(Notice("Documents are searched by words only for now.", f"{told.what} {told.why}", told.next))

    def _embedding(self, job: Job) -> OnProgress:
        """Sends progress on, and tells of each document that is complete."""

        def report(progress: IngestProgress) -> None:
            self._emit(ImportProgress(job.id, progress))
            if progress.phase == "done" and progress.document_id is not None:
                document = self._shelves.library().document(progress.document_id)
                if document.embedded:  # else another process has it in its hands
                    self._emit(DocumentReady(document))

        return report

    def _reporting(self, job: Job) -> OnProgress:
        """Sends progress on, and gives way to answers between two pieces of work."""
        pace = Pace(self._answering, job.cancelled)

        def report(progress: IngestProgress) -> None:
            self._emit(ImportProgress(job.id, progress))
            pace.rest()

        return report

    def _have_embedder(self, job: Job) -> None:
        if self._shelves.embedder_present:
            return
        if not self._settings().fetch_embedder:
            raise UserError(
                "The embedder is not there.",
                "Fetching it is switched off in the preferences.",
                "Switch it on to search by meaning.",
            )
        self._fetching = True
        try:
            self._fetch(job)
        finally:
            self._fetching = False

    def _fetch(self, job: Job) -> None:
        try:
            self._shelves.fetch_embedder(
                lambda done, total: self._emit(FetchProgress(job.id, EMBEDDER_NAME, done, total)), job.cancelled
            )
        except Cancelled:
            self._emit(FetchFailed(job.id, EMBEDDER_NAME, None))
            raise
        except UserError as error:
            self._emit(FetchFailed(job.id, EMBEDDER_NAME, error))
            raise
        self._emit(FetchDone(job.id, EMBEDDER_NAME, self._shelves.folder_of_embedder))
