"""An independent check of what stands under an answer as citations.

Nothing of `rag` takes part: pages are opened with pypdfium2, and the words of the answer are looked for in the
characters that the citation marks.
"""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.records import StoredCitation

if TYPE_CHECKING:
    import pypdfium2

MARKER = re.compile(r"\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\]")


@dataclass(frozen=True)
class CitationFigures:
    """Of a number of answers.

    Attributes:
        exact, altered, matched, missing: citations by verdict; missing: what they name is not there or does not say so.
        borne_out: answers with at least one citation that is not missing; `uncited`: those without any citation.
        quoted: of the others those under which the application quotes the pages themselves.
        wrong: what the check says against citations, a line each.
    """

    answers: int
    borne_out: int
    uncited: int
    exact: int
    altered: int
    matched: int
    missing: int
    wrong: tuple[str, ...]
    quoted: int = 0


@dataclass(frozen=True)
class Answered:
    """`pages_say`: what the application quotes below an answer that nothing bears out."""

    question: str
    answer: str
    citations: tuple[StoredCitation, ...]
    pages_say: tuple[StoredCitation, ...] = ()

    @property
    def borne_out(self) -> bool:
        return any(citation.verified != "not_found" for citation in self.citations)


class PdfPages:
    """Text and labels of PDFs, straight from PDFium. One thread at a time; `close` when done."""

    def __init__(self) -> None:
        self._open: dict[Path, pypdfium2.PdfDocument] = {}

    def text(self, path: Path, page: int, start: int, count: int) -> str:
        """`count` characters from PDFium's index `start`."""
        text_page = self._document(path)[page].get_textpage()
        return str(text_page.get_text_range(start, count, errors="ignore"))

    def label(self, path: Path, page: int) -> str:
        """As printed; the file's page number where it has none."""
        import pypdfium2.raw as pdfium

        document = self._document(path)
        size = pdfium.FPDF_GetPageLabel(document, page, None, 0)
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDF_GetPageLabel(document, page, buffer, size)
        return buffer.raw.decode("utf-16-le").rstrip("\0") or str(page + 1)

    def close(self) -> None:
        for document in self._open.values():
            document.close()
        self._open.clear()

    def _document(self, path: Path) -> pypdfium2.PdfDocument:
        import pypdfium2

        if path not in self._open:
            self._open[path] = pypdfium2.PdfDocument(path)
        return self._open[path]


def check(answer: str, citation: StoredCitation, path: Path, pages: PdfPages) -> list[str]:
    """What is wrong with a citation of the PDF at `path`; [] when nothing is."""
    wrong = []
    for part, label in zip(citation.ranges, citation.page_labels, strict=True):
        if pages.label(path, part.page_index) != label:
            wrong.append(f"label {label!r}, the file says {pages.label(path, part.page_index)!r}")
    source = "".join(pages.text(path, r.page_index, r.char_start, r.char_count) for r in citation.ranges)
    if plain(citation.quote) != plain(source):
        wrong.append(f"the quote is not what is marked: {citation.quote!r}, {source!r}")
    if citation.verified == "exact":
        end = citation.answer_start + citation.answer_count
        claim = answer[citation.answer_start : end]  # brackets in it are ours, or the document's own
        if not any(_same_words(words, source) for words in (MARKER.sub(" ", claim), claim)):
            wrong.append(f"not verbatim: {claim!r} in {source!r}")
    return wrong


def figures(answers: Sequence[Answered], path_of: Callable[[StoredCitation], Path]) -> CitationFigures:
    """All citations of all answers, checked. `path_of`: the PDF that a citation with ranges is of."""
    pages = PdfPages()
    try:
        wrong = tuple(f"{a.question}: {fault}" for a in answers for fault in _faults(a, path_of, pages))
    finally:
        pages.close()
    verdicts = [citation.verified for answered in answers for citation in answered.citations]
    return CitationFigures(
        answers=len(answers),
        borne_out=sum(a.borne_out for a in answers),
        uncited=sum(not a.citations for a in answers),
        exact=verdicts.count("exact"),
        altered=verdicts.count("altered"),
        matched=verdicts.count("matched"),
        missing=verdicts.count("not_found"),
        wrong=wrong,
        quoted=sum(bool(a.pages_say) and not a.borne_out for a in answers),
    )


def plain(text: str) -> str:
    """Letters and digits only, compatibility forms resolved: line ends, hyphens and ligatures make no difference."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _faults(answered: Answered, path_of: Callable[[StoredCitation], Path], pages: PdfPages) -> Iterable[str]:
    stated = (replace(quoted, verified="matched") for quoted in answered.pages_say)  # of no words of the answer
    for citation in (*answered.citations, *stated):
        if citation.ranges:
            yield from check(answered.answer, citation, path_of(citation), pages)
        elif citation.quote:
            yield f"a quote without a place: {citation.quote!r}"


def _same_words(claim: str, source: str) -> bool:
    """All marked characters stand in the claim, or all of the claim is marked."""
    ours, theirs = plain(claim), plain(source)
    return bool(theirs) and (theirs in ours or (bool(ours) and ours in theirs))
