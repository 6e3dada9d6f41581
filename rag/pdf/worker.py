"""Extraction process: reads one PDF with PDFium and writes what it finds to its standard output.

Run as `python -m rag.pdf.worker`; frames (see `rag.pdf.process`) are of type open, page, error or done. It runs apart
because PDF libraries crash, hang and hold the interpreter's lock on bad files; whoever started it may kill it at any
moment.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from rag.pdf.classify import LITTLE_TEXT, classify
from rag.pdf.process import Message, lower_limits, private_output, send
from rag.pdf.text import clean

ERROR_KINDS = {
    raw.FPDF_ERR_SUCCESS: "zero_pages",
    raw.FPDF_ERR_PASSWORD: "encrypted",
    raw.FPDF_ERR_FORMAT: "format",
}
PROBES = 8
MOST_OBJECTS = 4000  # of a page, looked at for pictures


def main() -> None:
    out = private_output()
    request = json.loads(sys.stdin.buffer.readline())
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
    }


def outline(document: pdfium.PdfDocument) -> list[tuple[str, int | None, int]]:
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
        characters = page_characters(loaded)
        text, positions = clean(characters)
        share = picture_share(loaded) if len(text) < LITTLE_TEXT else 0.0
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
    kind, reason = classify(text, share)
    return {
        "type": "page",
        "page": index,
        "text": text,
        "clean": positions.clean,
        "raw": positions.raw,
        "kind": kind,
        "reason": reason,
    }


def page_characters(loaded: pdfium.PdfPage) -> str:
    """The page's characters, one per PDFium character index."""
    textpage = loaded.get_textpage()
    try:
        count = textpage.count_chars()
        quick = _all_at_once(textpage, count)
        return _one_by_one(textpage, count) if quick is None else quick
    finally:
        textpage.close()


def _one_by_one(textpage: pdfium.PdfTextPage, count: int) -> str:
    return "".join(chr(raw.FPDFText_GetUnicode(textpage, index)) for index in range(count))


def _all_at_once(textpage: pdfium.PdfTextPage, count: int) -> str | None:
    """FPDFText_GetText is 20 times as fast, but it works on another list, which may leave characters out or
    have more. None where it differs in length or at a probed place."""
    buffer = (ctypes.c_ushort * (count + 1))()
    if raw.FPDFText_GetText(textpage, 0, count, buffer) - 1 != count:
        return None
    text = bytes(buffer)[: 2 * count].decode("utf-16-le", "replace")
    return text if len(text) == count and _probes_agree(textpage, text) else None


def _probes_agree(textpage: pdfium.PdfTextPage, text: str) -> bool:
    for index in range(0, len(text), max(1, len(text) // PROBES)):
        unicode = raw.FPDFText_GetUnicode(textpage, index)
        if unicode != ord(text[index]) and not (unicode == 0x02 and text[index] == "\ufffe"):
            return False
    return True


def picture_share(loaded: pdfium.PdfPage) -> float:
    """Part of the page's area that its largest picture covers."""
    width, height = loaded.get_size()
    largest = 0.0
    for number, item in enumerate(loaded.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3)):
        left, bottom, right, top = item.get_bounds()
        largest = max(largest, (right - left) * (top - bottom))
        if number >= MOST_OBJECTS:
            break
    return min(1.0, max(0.0, largest / (width * height))) if width * height > 0 else 0.0


if __name__ == "__main__":
    main()
