"""Extraction process: reads one PDF with PDFium and writes what it finds to its standard output.

Run as `python -m rag.pdf.worker`; frames (see `rag.pdf.process`) are of type open, page, error or done. It runs apart
because PDF libraries crash, hang and hold the interpreter's lock on bad files; whoever started it may kill it at any
moment.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import islice

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from rag.pdf.arrange import arranged
from rag.pdf.classify import LITTLE_TEXT, Drawn, classify
from rag.pdf.process import Message, end_with_parent, lower_limits, private_output, send
from rag.pdf.text import clean

ERROR_KINDS = {
    raw.FPDF_ERR_SUCCESS: "zero_pages",
    raw.FPDF_ERR_PASSWORD: "encrypted",
    raw.FPDF_ERR_FORMAT: "format",
}
METADATA = {"Title": "title", "Author": "author", "Subject": "subject", "CreationDate": "created"}
LONGEST_METADATA = 300
MOST_OBJECTS = 4000  # of a page, looked at for pictures and lines


def main() -> None:
    out = private_output()
    request = json.loads(sys.stdin.buffer.readline())
    end_with_parent(request["parent"])
    lower_limits(request.get("memory_bytes"))
    for message in answer(request):
        send(out, message)
    out.flush()


def answer(request: Message) -> Iterator[Message]:
    """Frames for a request {path, password, pages: [index] or null for all, save_as: path or null}."""
    try:
        document = pdfium.PdfDocument(request["path"], password=request.get("password"))
    except (pdfium.PdfiumError, OSError, MemoryError) as error:
        code = getattr(error, "err_code", None)
        yield {"type": "error", "kind": ERROR_KINDS.get(code, "unreadable"), "message": str(error)}
        return
    try:
        if request.get("save_as"):
            document.save(request["save_as"], flags=raw.FPDF_REMOVE_SECURITY)
        yield opened(document)
        wanted = request.get("pages")
        for index in range(len(document)) if wanted is None else wanted:
            yield page(document, index)
        yield {"type": "done"}
    finally:
        document.close()


def opened(document: pdfium.PdfDocument) -> Message:
    count = len(document)
    labels = [document.get_page_label(index) or str(index + 1) for index in range(count)]
    encrypted = raw.FPDF_GetSecurityHandlerRevision(document) != -1
    return {
        "type": "open",
        "pages": count,
        "labels": labels,
        "outline": outline(document),
        "encrypted": encrypted,
        "metadata": metadata(document),
    }


def metadata(document: pdfium.PdfDocument) -> dict[str, str]:
    """What the file says of itself, without what made it; dates as year-month-day."""
    given = {key: " ".join(clean(document.get_metadata_value(key))[0].split()) for key in METADATA}
    date = re.match(r"D:(\d{4})(\d{2})?(\d{2})?", given["CreationDate"])
    given["CreationDate"] = "-".join(part for part in date.groups() if part) if date else ""
    return {name: given[key][:LONGEST_METADATA] for key, name in METADATA.items() if given[key]}


def outline(document: pdfium.PdfDocument) -> list[tuple[str, int | None, int]]:
    for index in range(len(document)):
        document.get_page_size(index)  # fills PDFium's list of pages, without which each entry's page costs 3 ms
    entries: list[tuple[str, int | None, int]] = []
    for bookmark in document.get_toc():
        target = bookmark.get_dest()
        title = clean(" ".join(bookmark.get_title().split()))[0]
        entries.append((title, target.get_index() if target else None, bookmark.level))
    return entries


def page(document: pdfium.PdfDocument, index: int) -> Message:
    """Frame of one page; a page that cannot be loaded has a `reason` and no text."""
    try:
        loaded = document[index]
        found = arranged(loaded)
        text, positions = clean(found.text, found.origin)
        pictured = drawn(loaded) if len(text) < LITTLE_TEXT else Drawn()
        loaded.close()
    except (pdfium.PdfiumError, MemoryError) as error:
        return {
            "type": "page",
            "page": index,
            "text": "",
            "clean": [],
            "raw": [],
            "kind": "garbled",
            "reason": f"The page is damaged and could not be read ({error}).",
        }
    kind, reason = classify(text, pictured, found.unmapped, found.lost)
    return {
        "type": "page",
        "page": index,
        "text": text,
        "clean": positions.clean,
        "raw": positions.raw,
        "kind": kind,
        "reason": reason or found.restored,
    }


def drawn(loaded: pdfium.PdfPage) -> Drawn:
    """What is on the page beside its text."""
    width, height = loaded.get_size()
    largest, strokes = 0.0, 0
    kinds = (raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH)
    for item in islice(loaded.get_objects(filter=kinds, max_depth=3), MOST_OBJECTS):
        if item.type == raw.FPDF_PAGEOBJ_PATH:
            strokes += max(0, raw.FPDFPath_CountSegments(item))
        else:
            left, bottom, right, top = item.get_bounds()
            largest = max(largest, (right - left) * (top - bottom))
    share = largest / (width * height) if width * height > 0 else 0.0
    return Drawn(min(1.0, max(0.0, share)), strokes)


if __name__ == "__main__":
    main()
