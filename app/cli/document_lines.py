"""Lines below a document: what is wrong with it, its other names, what can be done."""

from __future__ import annotations

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
