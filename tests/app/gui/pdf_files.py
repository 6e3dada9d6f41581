"""Small PDFs with real text, drawn by Qt."""

from __future__ import annotations

from pathlib import Path

import pypdf
from PySide6.QtCore import QPointF
from PySide6.QtGui import QFont, QPageSize, QPainter, QPdfWriter


def write_pdf(path: Path, pages: list[list[str]]) -> Path:
    """One page per list, one line of text per string."""
    writer = QPdfWriter(str(path))
    writer.setResolution(96)
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    painter = QPainter(writer)
    painter.setFont(QFont("DejaVu Sans", 10))
    for number, lines in enumerate(pages):
        if number:
            writer.newPage()
        for row, line in enumerate(lines):
            painter.drawText(QPointF(30, 40 + row * 20), line)
    painter.end()
    return path


def add_outline(path: Path, entries: list[tuple[str, int, int]]) -> Path:
    """Entries of the outline as (title, page from 0, level)."""
    writer = pypdf.PdfWriter(clone_from=path)
    parents: dict[int, object] = {}
    for title, page, level in entries:
        parents[level] = writer.add_outline_item(title, page, parent=parents.get(level - 1))
    writer.write(path)
    return path


def long_pages(subject: str, count: int) -> list[list[str]]:
    """Pages of sentences about `subject`, none like another."""
    return [
        [
            f"{subject.capitalize()} rule {page * 20 + row}: item {(page * 7 + row * 3) % 97} is checked"
            f" after {(page + row) % 23 + 2} days."
            for row in range(20)
        ]
        for page in range(count)
    ]
