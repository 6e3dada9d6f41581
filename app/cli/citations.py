"""Citations below an answer that is on the terminal already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.core.records import StoredCitation
from app.core.shown_numbers import printed_numbers

MARKS = {"exact": "✓", "altered": "≈", "matched": "→", "not_found": "✗"}


def citation_lines(text: str, citations: Sequence[StoredCitation]) -> Iterator[str]:
    """`→ [1] FILE, page 34: “quote”`, a line each, in the order of their numbers."""
    numbers = printed_numbers(text, citations)
    for citation in sorted(citations, key=lambda c: (numbers[c.marker], c.answer_start)):
        yield f"  {MARKS.get(citation.verified, '?')} [{numbers[citation.marker]}] {_place(citation)}"


def _place(citation: StoredCitation) -> str:
    if not citation.ranges:
        return "not found in the documents"
    pages = ", ".join(dict.fromkeys(citation.page_labels))
    return f"{citation.document}, page {pages}: “{citation.quote}”"
