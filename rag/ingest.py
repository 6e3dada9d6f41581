"""Taking a PDF into the library: copy, text, words, vectors; each step can be killed and is then gone on with."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from rag.chunk import Chunk, PageText, chunks
from rag.errors import DocumentError, IntakeCancelled
from rag.index import records, stems
from rag.index.database import Database, private_file
from rag.index.vectors import VectorFiles
from rag.languages import Stemmer
from rag.layout import RunningLines
from rag.pdf import inspect
from rag.pdf.client import Contents, ExtractedPage, Extraction, Limits
from rag.pdf.process import Child
from rag.protocols import Cancelled, Embedder, OnProgress
from rag.sizes import plural, size_text
from rag.types import Document, DocumentId, IngestPhase, IngestProgress

COPY_BYTES = 1 << 20
REPAIR = (sys.executable, "-m", "rag.pdf.repair")
REPAIR_SECONDS = 120.0
FOUND_ANEW = "Damaged: its table of objects is lost; PDFium searched the whole file for them."
REPAIRABLE = ("format", "unreadable", "zero_pages")
PAGES_A_TRANSACTION = 32
PASSAGES_A_TRANSACTION = 64


@dataclass(frozen=True)
class Shelf:
    """Where the library keeps things."""

    db: Database
    files: Path
    vectors: VectorFiles
    embedder: Embedder | None
    limits: Limits


@dataclass(frozen=True)
class Job:
    """One import: the file, who watches it, who may stop it, and whether another should have its vectors first."""

    path: Path
    sha256: str
    password: str | None
    on_progress: OnProgress
    cancelled: Cancelled
    gives_way: Callable[[], bool] = lambda: False

    def report(self, document_id: DocumentId | None, phase: IngestPhase, done: int, total: int) -> None:
        if self.cancelled():
            raise IntakeCancelled(str(self.path))
        self.on_progress(IngestProgress(self.path, document_id, phase, done, total))


def file_hash(path: Path, cancelled: Cancelled) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(COPY_BYTES):
            digest.update(block)
            if cancelled():
                raise IntakeCancelled(str(path))
    return digest.hexdigest()


def take_in(shelf: Shelf, job: Job) -> DocumentId:
    """Makes the file a document; nothing is left behind when it is no PDF that can be read. Returns its id."""
    contents, note = store_copy(shelf, job)
    with shelf.db.transaction():
        return records.add_document(shelf.db, job.sha256, job.path.name, contents, time.time(), note)


def store_copy(shelf: Shelf, job: Job) -> tuple[Contents, str]:
    """Puts the library's own copy of the file into its place. Returns its contents, and what had to be done for it."""
    part = shelf.files / f"{job.sha256}.part"
    plain = shelf.files / f"{job.sha256}.plain"
    try:
        _copy(job, part)
        contents, note = _open(shelf, job, part, plain)
        os.replace(plain if plain.exists() else part, shelf.files / f"{job.sha256}.pdf")
        return contents, note
    finally:
        part.unlink(missing_ok=True)
        plain.unlink(missing_ok=True)


def _copy(job: Job, part: Path) -> None:
    total = job.path.stat().st_size
    free = shutil.disk_usage(part.parent).free
    if free < total + COPY_BYTES:
        why = f"It needs {size_text(total + COPY_BYTES)}, {size_text(free)} are free."
        raise DocumentError(f"There is no room for {job.path.name}.", why, "Free some space.", "no_space")
    digest = hashlib.sha256()
    with job.path.open("rb") as source, private_file(part).open("wb") as copy:
        while block := source.read(COPY_BYTES):
            digest.update(block)
            copy.write(block)
            job.report(None, "copy", copy.tell(), total)
        copy.flush()
        os.fsync(copy.fileno())
    if digest.hexdigest() != job.sha256:
        why = "It was being written to while it was read."
        raise DocumentError(f"{job.path.name} has changed.", why, "Add it again when it is complete.")


def _open(shelf: Shelf, job: Job, part: Path, plain: Path) -> tuple[Contents, str]:
    """Contents of the copy, and what had to be done for it. Of a file that needs a password, or that had to be
    repaired, a plain copy is made at `plain`."""
    try:
        contents = _contents(shelf, job, part, job.password)
        if contents.encrypted and job.password is not None:
            private_file(plain)
            with Extraction(part, job.password, job.cancelled, save_as=plain, limits=shelf.limits) as extraction:
                extraction.contents()
    except DocumentError as error:
        repaired = _repaired(shelf, job, part, plain) if error.kind in REPAIRABLE else None
        if repaired is None:
            raise inspect.refused(part, job.path.name, error.kind, error.why, job.password is not None) from None
        return repaired
    if contents.pages == 0:
        raise inspect.refused(part, job.path.name, "zero_pages", "", False)
    return contents, file_note(part, contents.pages)


def file_note(path: Path, pages: int) -> str:
    """What is wrong with a file that could be opened as it is; "" when nothing is."""
    return f"{FOUND_ANEW} {plural(pages, 'page')} found." if inspect.lost_table(path) else ""


def _contents(shelf: Shelf, job: Job, path: Path, password: str | None) -> Contents:
    with Extraction(path, password, job.cancelled, limits=shelf.limits) as extraction:
        return extraction.contents()


def _repaired(shelf: Shelf, job: Job, part: Path, plain: Path) -> tuple[Contents, str] | None:
    """The contents of a repaired copy at `plain`; None when there is nothing to be saved."""
    request = {
        "path": str(part),
        "save_as": str(private_file(plain)),
        "memory_bytes": shelf.limits.memory_bytes,
    }
    child = Child(REPAIR, request, job.cancelled)
    try:
        message = child.next(REPAIR_SECONDS)
    finally:
        child.kill()
    with suppress(DocumentError):
        contents = _contents(shelf, job, plain, None)
        if message["type"] == "done" and contents.pages:
            cut = "" if inspect.has_end(part) else " The end of the file is missing."
            return contents, f"{message['how']}{cut} {_how_many(contents.pages, message['expected'])}"
    plain.unlink(missing_ok=True)
    return None


def _how_many(found: int, expected: int) -> str:
    if expected > found:
        return f"{plural(found, 'page')} of at least {expected:,} were found, {expected - found:,} are missing."
    told = "all that its page tree tells of" if expected == found else "how many it had is not known"
    return f"{plural(found, 'page')} found, {told}."


def read_text(shelf: Shelf, job: Job, document: Document) -> None:
    """Extracts the pages that are missing; their words can be searched as they come."""
    missing = records.missing_pages(shelf.db, document.id, document.pages)
    known = records.recognised(shelf.db, document.id)
    titles = records.outline_titles(shelf.db, document.id)
    job.report(document.id, "text", document.pages - len(missing), document.pages)
    with Extraction(document.path, None, job.cancelled, limits=shelf.limits) as extraction:
        pages = extraction.pages(missing)
        done = document.pages - len(missing)
        while batch := list(islice(watched(pages, job, document, done), PAGES_A_TRANSACTION)):
            with shelf.db.transaction():
                for page in batch:
                    read = as_recognised(page) if page.page_index in known else page
                    records.add_page(shelf.db, document.id, read, titles)
            done += len(batch)
    _check_readable(shelf, job, document)
    with shelf.db.transaction():
        shelf.db.run(
            "UPDATE documents SET phase = 'words',"
            " characters = (SELECT sum(characters) FROM pages WHERE document_id = ?1) WHERE id = ?1",
            (document.id,),
        )


def as_recognised(page: ExtractedPage) -> ExtractedPage:
    """A scan with its words laid under it is text, or nothing can be read on it."""
    if page.text.strip():
        return replace(page, kind="text", reason="The text was recognised from a picture; letters may be wrong.")
    return replace(page, kind="empty", reason="No text was recognised on the picture.")


def watched(pages: Iterator[ExtractedPage], job: Job, document: Document, done: int) -> Iterator[ExtractedPage]:
    """The pages, each reported; `done` were before them."""
    for count, page in enumerate(pages, done + 1):
        job.report(document.id, "text", count, document.pages)
        yield page


def _check_readable(shelf: Shelf, job: Job, document: Document) -> None:
    """A file of which every page is damaged is refused like one that cannot be opened."""
    reports = records.page_reports(shelf.db, document.id)
    if all(page.kind == "garbled" and page.characters == 0 for page in reports):
        give_up(shelf, document)
        raise inspect.refused(job.path, job.path.name, "unreadable", reports[0].reason, False)


def give_up(shelf: Shelf, document: Document) -> None:
    """Leaves nothing of a file that can be opened and not read."""
    with shelf.db.transaction():
        records.remove_document(shelf.db, document.id)
    document.path.unlink(missing_ok=True)


def index_words(shelf: Shelf, job: Job, document: Document) -> None:
    """Cuts the document into passages and windows. What is already there is the same and is passed over."""
    _forget_other_cut(shelf, document)
    stemmer = _stem_pages(shelf, job, document)
    ordinal, window = _already_cut(shelf, document)
    made = islice(cut(shelf, document.id), ordinal, None)
    while batch := list(islice(made, PASSAGES_A_TRANSACTION)):
        job.report(document.id, "words", batch[0].pieces[0].page_index, document.pages)
        with shelf.db.transaction():
            window = _add_chunks(shelf, document.id, ordinal, window, batch, stemmer)
        ordinal += len(batch)
    with shelf.db.transaction():
        shelf.db.run(
            "UPDATE documents SET phase = 'vectors', windows = ?, revision = revision + 1 WHERE id = ?",
            (window, document.id),
        )


def cut(shelf: Shelf, document_id: DocumentId) -> Iterator[Chunk]:
    """The document's passages, from its stored text."""
    running = RunningLines()
    for page_index, text in records.page_texts(shelf.db, document_id):
        running.add(page_index, text)
    texts = (PageText(*row) for row in records.page_texts(shelf.db, document_id))
    return iter(chunks(texts, records.outline(shelf.db, document_id), running))


def _stem_pages(shelf: Shelf, job: Job, document: Document) -> Stemmer:
    """The stemmer of the document's language, once its pages' words are there by their stems."""
    stemmer = Stemmer(stems.told_language(shelf.db, document.id, document.pages))
    if stemmer.language != document.language:  # told now, so that what is broken off goes on
        with shelf.db.transaction():
            stems.remove_pages(shelf.db, document.id)
            records.remove_passages(shelf.db, document.id)
            shelf.db.run("UPDATE documents SET language = ? WHERE id = ?", (stemmer.language, document.id))
    more = bool(stemmer.language)
    while more:
        job.report(document.id, "words", 0, document.pages)
        with shelf.db.transaction():
            more = stems.add_pages(shelf.db, document.id, stemmer)
    return stemmer


def _forget_other_cut(shelf: Shelf, document: Document) -> None:
    (known,) = shelf.db.tuples("SELECT chunker, stemming FROM documents WHERE id = ?", (document.id,))
    if known != (records.CHUNKER, stems.STEMMING):
        with shelf.db.transaction():
            stems.remove_pages(shelf.db, document.id)
            records.remove_passages(shelf.db, document.id)
            now = (records.CHUNKER, stems.STEMMING, document.id)
            shelf.db.run("UPDATE documents SET chunker = ?, stemming = ? WHERE id = ?", now)


def _already_cut(shelf: Shelf, document: Document) -> tuple[int, int]:
    rows = shelf.db.tuples(
        "SELECT (SELECT count(*) FROM passages WHERE document_id = ?1),"
        " (SELECT count(*) FROM windows WHERE document_id = ?1)",
        (document.id,),
    )
    return rows[0][0], rows[0][1]


def _add_chunks(
    shelf: Shelf, document_id: DocumentId, ordinal: int, window: int, batch: list[Chunk], stemmer: Stemmer
) -> int:
    for number, chunk in enumerate(batch, ordinal):
        window = records.add_chunk(shelf.db, document_id, number, window, chunk, stemmer)
    return window
