"""Reading scanned pages: their words are recognised and laid under the picture in the library's copy of the file.

From then on they are text like any other: extracted, indexed, cited and marked by PDFium's character indices.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rag.errors import DocumentError
from rag.index import records, rereads
from rag.index.database import private_file
from rag.ingest import Job, Shelf
from rag.pdf import tesseract
from rag.pdf.process import Child, Message
from rag.types import Document, DocumentId

START_SECONDS = 60.0
PAGE_SECONDS = 180.0  # a page of small print takes 6 s on a calm core
LAYER_SECONDS = 600.0
WORKER = (sys.executable, "-m", "rag.pdf.recognise_worker")
LAYER = (sys.executable, "-m", "rag.pdf.text_layer")


def available() -> bool:
    """The optional packages are installed, or the system has tesseract."""
    return (find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None) or tesseract.available()


def recognise(shelf: Shelf, job: Job, document: Document, pages: Sequence[int]) -> None:
    """Recognises the pages, writes their words into the library's copy, and marks the document to be read anew.

    Pages done are kept when it is cancelled or killed. Errors: DocumentError of kind "recognition".
    """
    if not available():
        raise DocumentError(
            "Scanned pages cannot be read yet.",
            "The packages that recognise letters are not installed.",
            "Install them with: pip install 'pagekeep[ocr]' (or the system's tesseract)",
            "recognition",
        )
    done = set(records.recognised(shelf.db, document.id))
    _read_words(shelf, job, document, [page for page in pages if page not in done])
    _take_over(shelf, job, document, pages)


def _read_words(shelf: Shelf, job: Job, document: Document, pages: Sequence[int]) -> None:
    request = {"path": str(document.path), "pages": list(pages), "memory_bytes": shelf.limits.memory_bytes}
    job.report(document.id, "recognise", 0, len(pages))
    if not pages:
        return
    child = Child(WORKER, request, job.cancelled)
    try:
        _expect(child.next(START_SECONDS), "ready")
        for count, page in enumerate(pages, 1):
            words = _expect(child.next(PAGE_SECONDS), "words")["words"]
            with shelf.db.transaction():
                shelf.db.run("INSERT INTO recognised VALUES (?, ?, ?)", (document.id, page, json.dumps(words)))
            job.report(document.id, "recognise", count, len(pages))
    finally:
        child.kill()


def _expect(message: Message, wanted: str) -> Message:
    if message["type"] != wanted:
        whys = {"stalled": "It took too long.", "ended": "The recogniser ended unexpectedly."}
        why = whys.get(message["type"]) or f"{message.get('message', message['type'])}."
        what = "The scanned pages could not be read."
        raise DocumentError(what, why, "Try again; pages that were read are kept.", "recognition")
    return message


def _take_over(shelf: Shelf, job: Job, document: Document, pages: Sequence[int]) -> None:
    """Puts the file with the words in the place of the copy, in one transaction with what is read anew."""
    layered = _next_name(document.path)
    try:
        _write_layer(shelf, job, document, pages, private_file(layered))
        with shelf.db.transaction():
            _forget(shelf, document.id, pages)
            shelf.db.run(
                "UPDATE documents SET file = ?, phase = 'text', windows = 0, revision = revision + 1 WHERE id = ?",
                (layered.name, document.id),
            )
    except BaseException:
        layered.unlink(missing_ok=True)
        raise
    document.path.unlink(missing_ok=True)


def _next_name(path: Path) -> Path:
    sha256, *number = path.stem.split(".")
    return path.with_name(f"{sha256}.{int(number[0]) + 1 if number else 1}.pdf")


def _write_layer(shelf: Shelf, job: Job, document: Document, pages: Sequence[int], target: Path) -> None:
    words = records.recognised(shelf.db, document.id)
    request = {
        "path": str(document.path),
        "save_as": str(target),
        "pages": {page: words[page] for page in pages},
        "memory_bytes": shelf.limits.memory_bytes,
    }
    child = Child(LAYER, request, job.cancelled)
    try:
        _expect(child.next(LAYER_SECONDS), "done")
    finally:
        child.kill()
    with target.open("r+b") as file:
        os.fsync(file.fileno())


def _forget(shelf: Shelf, document_id: DocumentId, pages: Sequence[int]) -> None:
    """What was made from the pages as they were; passages and vectors of the whole document, which run on."""
    rereads.forget(shelf.db, document_id)
    records.remove_passages(shelf.db, document_id)
    records.remove_pages(shelf.db, document_id, pages)
    shelf.db.run("DELETE FROM vectors WHERE document_id = ?", (document_id,))
