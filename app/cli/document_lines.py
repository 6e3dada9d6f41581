"""Lines about a document: its state, what is wrong with it, its other names, what can be done."""

from __future__ import annotations

from app.core.errors import UserError
from rag.sizes import plural
from rag.types import Document, IntakeReport, lacks_letters


def about_lines(document: Document) -> list[str]:
    """What is wrong with the file, under which other names it came, what can be done about its scans."""
    names = f"Also added as: {', '.join(document.other_names)}" if document.other_names else ""
    scans = f"Read them with OCR: pagekeep index ocr '{document.name}'" if document.unreadable_pages else ""
    return [f"    {line}" for line in (document.note, names, scans) if line]


def letter_lines(report: IntakeReport) -> list[str]:
    pages = sum(lacks_letters(page) for page in report.pages)
    return [f"    Letters are missing on {plural(pages, 'page')} (see 'pagekeep index report')."] if pages else []


def state_words(document: Document, being_read: bool) -> str:
    characters = plural(document.characters, "character")
    if document.state == "importing":
        return f"{characters}, " + ("being imported" if being_read else "its import was stopped; add it again to go on")
    state = "searchable by words" if document.state == "words" else document.state
    return f"{characters}, {state}" if document.characters else "no text"


def taken_words(document: Document) -> str:
    pages, unread = plural(document.pages, "page"), len(document.unreadable_pages)
    if unread == document.pages or not document.characters:
        return f"{document.name}: {pages}, none with text to search"
    besides = f"; {plural(unread, 'page')} without text" if unread else ""
    return f"{document.name}: {pages}, searchable by words now{besides}"


def not_taken(file: str, error: UserError) -> str:
    return f"Not taken: {file}: {error.what} {error.why} {error.next}".rstrip()
