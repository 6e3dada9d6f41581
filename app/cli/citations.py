"""Citations below an answer that is on the terminal already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.core.borne_out import PAGES_SAY, REPEATS
from app.core.records import StoredCitation, TurnReport
from app.core.shown_numbers import printed_numbers

MARKS = {"exact": "✓", "altered": "≈", "matched": "→", "not_found": "✗"}
MEANINGS = {
    "exact": "word for word",
    "altered": "with changes",
    "matched": "matched by Pagekeep",
    "not_found": "not in the documents",
}


def citation_lines(text: str, citations: Sequence[StoredCitation]) -> Iterator[str]:
    """`→ [1] FILE, page 34: “quote”`, a line each, in the order of their numbers; a passage's further places stand
    below its first, each told once, then what the marks mean."""
    numbers = printed_numbers(text, citations)
    before, told = None, set()
    for citation in sorted(citations, key=lambda c: (numbers[c.marker], c.answer_start)):
        number = numbers[citation.marker]
        if (one := (number, citation.verified, _place(citation))) in told:
            continue
        told.add(one)
        name = f"[{number}]" if number != before else f"{'and':>{len(str(number)) + 2}}"
        yield f"  {MARKS.get(citation.verified, '?')} {name} {_place(citation)}"
        before = number
    used = [
        f"{MARKS[verdict]} {MEANINGS[verdict]}" for verdict in MARKS if any(c.verified == verdict for c in citations)
    ]
    if used:
        yield f"    ({', '.join(used)})"


def remark_lines(report: TurnReport | None) -> list[str]:
    """That an answer repeats another one; what Pagekeep quotes because nothing bears it out: `FILE, page 34: “quote”`,
    a line each."""
    if report is None:
        return []
    quoted = [f"  {_place(citation)}" for citation in report.pages_say]
    return [*([f"  {REPEATS}"] if report.repeats else ()), *([f"  {PAGES_SAY}"] if quoted else ()), *quoted]


def _place(citation: StoredCitation) -> str:
    if not citation.ranges:
        return "not found in the documents"
    pages = ", ".join(dict.fromkeys(citation.page_labels))
    return f"{citation.document}, page {pages}: “{citation.quote}”"
