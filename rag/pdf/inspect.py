"""Judging a file before and after PDFium refuses it: what it is, and what the reader can do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

from rag.errors import DocumentError

STARTXREF = re.compile(rb"startxref\s+(\d{1,15})")
TABLE = re.compile(rb"\s*(?:xref|\d+\s+\d+\s+obj)")
HEADER_WITHIN = 1024  # PDFium looks for %PDF- in the first 1,024 bytes
LOOKS_LIKE = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"II*\x00", "a TIFF picture"),
    (b"MM\x00*", "a TIFF picture"),
    (b"PK\x03\x04", "a ZIP archive (perhaps a Word, OpenDocument or EPUB file)"),
    (b"\xd0\xcf\x11\xe0", "an old Microsoft Office file"),
    (b"{\\rtf", "a rich text file"),
    (b"%!PS", "a PostScript file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"GGUF", "a GGUF model"),
    (b"AT&TFORM", "a DjVu file"),
    (b"\x7fELF", "a program"),
)


def check_is_pdf(path: Path) -> None:
    """Raises DocumentError when the file is missing, empty or has no PDF header."""
    if path.is_dir():
        why, way_out = "Documents are taken in file by file.", f"Name the PDF files in it: {path / '*.pdf'}"
        raise DocumentError(f"{path.name or path} is a folder.", why, way_out, "not_pdf")
    head, size = _head(path)
    if size == 0:
        raise DocumentError(f"{path.name} is empty.", "The file has 0 bytes.", "Download or save it again.", "empty")
    if b"%PDF-" not in head:
        why = f"It looks like {looks_like(head)}."
        raise DocumentError(f"{path.name} is not a PDF.", why, "Choose a PDF, or print the file to a PDF.", "not_pdf")


def _head(path: Path) -> tuple[bytes, int]:
    try:
        with path.open("rb") as file:
            return file.read(HEADER_WITHIN), path.stat().st_size
    except FileNotFoundError:
        raise DocumentError(f"{path.name} is not there.", f"No file at {path}.", "Check the name.", "missing") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise DocumentError(f"{path.name} cannot be read.", f"{why}.", "Check its permissions.", "missing") from error


def looks_like(head: bytes) -> str:
    """What a file that begins with `head` most likely is, with its article."""
    for magic, name in LOOKS_LIKE:
        if head.startswith(magic):
            return name
    start = head.lstrip(b"\xef\xbb\xbf \r\n\t")[:100].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head")):
        return "a web page (perhaps an error page saved under the PDF's name)"
    if start.startswith((b"<?xml", b"<svg")):
        return "an XML file"
    return "data of an unknown kind" if b"\x00" in head or not _is_text(head) else "a plain text file"


def _is_text(head: bytes) -> bool:
    try:
        head[: max(1, len(head) - 4)].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def refused(path: Path, name: str, kind: str, message: str, had_password: bool) -> DocumentError:
    """The error to show for a file with a PDF header that PDFium did not open (`kind` as the worker gives it)."""
    if kind == "encrypted":
        what = f"The password for {name} is wrong." if had_password else f"{name} needs a password."
        way_out = "Give its password; on the command line: pagekeep index add FILE --password TEXT."
        return DocumentError(what, "The file is encrypted.", way_out, kind)
    if kind == "zero_pages":
        return DocumentError(f"{name} has no pages.", "Its page list is empty.", "Ask its maker for a new copy.", kind)
    if kind == "slow":
        way_out = "Try again when the machine has less to do, or try another copy of it."
        return DocumentError(f"{name} cannot be opened.", message, way_out, kind)
    if kind == "format" and not has_end(path):
        why = "The end of the file is missing."
        return DocumentError(f"{name} is cut off.", why, "Download or copy it again.", "truncated")
    return DocumentError(f"{name} cannot be read.", f"It is damaged ({message}).", "Try another copy of it.")


def has_end(path: Path) -> bool:
    return b"%%EOF" in _tail(path)


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - 2048))
        return file.read()


def lost_table(path: Path) -> bool:
    """The file does not say right where its table of objects stands; PDFium then looks for the objects itself."""
    places = STARTXREF.findall(_tail(path))
    if not places:
        return True
    with path.open("rb") as file:
        start = max(0, file.read(HEADER_WITHIN).find(b"%PDF-"))  # places are counted from the header
        return not any(_is_table(file, int(places[-1]) + shift) for shift in {0, start})


def _is_table(file: BinaryIO, place: int) -> bool:
    file.seek(place)
    return TABLE.match(file.read(64)) is not None
