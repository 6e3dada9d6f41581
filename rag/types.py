"""Values that cross the border of this package; all immutable.

Pages are numbered from 0. Character positions are PDFium character indices of the page, the ones that
`FPDFText_CountRects` and QtPdf's `getSelectionAtIndex` take, so a range can be highlighted as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NewType

from rag.errors import DocumentError

DocumentId = NewType("DocumentId", int)
DocumentState = Literal["importing", "words", "ready", "trashed"]
PageKind = Literal["text", "scan", "mixed", "garbled", "empty", "drawing"]
IngestPhase = Literal["copy", "recognise", "text", "words", "vectors", "done"]
Verdict = Literal["exact", "altered", "matched", "not_found"]


@dataclass(frozen=True)
class CharRange:
    """`char_count` characters of a page from PDFium character index `char_start`."""

    page_index: int
    char_start: int
    char_count: int


@dataclass(frozen=True)
class Document:
    """A PDF in the library.

    Attributes:
        name: file name it was added under.
        path: the library's own copy, which can always be opened (without a password).
        sha256: of the file as it was added, in hex.
        characters: of all pages' text.
        state: "importing" until its words can be searched, "words" until its vectors are complete.
        added: seconds since the epoch.
        unreadable_pages: pages whose text could not be had (scans, garbled or broken pages).
        embedded: every window has its vector from the library's embedder.
        language: whose stemmer made its words in the index, by Snowball's name; "" for the index's own (English).
        other_names: names under which the same content was added again; it is found by any of them.
        note: what is wrong with the file as a whole, and what was done for it; "" when nothing is.
        metadata: what the file says of itself: "title", "author" and the like, as far as they are given.
        extraction: which version of the program's way from page to text made its text (`rag.reread` raises it).
    """

    id: DocumentId
    name: str
    path: Path
    sha256: str
    pages: int
    characters: int
    state: DocumentState
    added: float
    unreadable_pages: tuple[int, ...] = ()
    embedded: bool = False
    language: str = ""
    other_names: tuple[str, ...] = ()
    note: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    extraction: int = 1


@dataclass(frozen=True)
class Passage:
    """About 200 words of a document, cut at sentence ends.

    Attributes:
        index: position in the document's reading order.
        text: the stored text; line ends as in the PDF, hyphenated words joined.
        heading: titles of the outline above it, outermost first, joined by " > ".
        ranges: where `text` stands, in order; more than one when a sentence runs over the page end, or when the
            page had to be put in order.
    """

    id: int
    document_id: DocumentId
    index: int
    text: str
    heading: str
    ranges: tuple[CharRange, ...]

    @property
    def pages(self) -> tuple[int, ...]:
        """Pages it stands on, in order."""
        return tuple(dict.fromkeys(part.page_index for part in self.ranges))


@dataclass(frozen=True)
class Hit:
    """A passage found for a question.

    Attributes:
        document: its name.
        score: comparable within one search only; higher is better.
        page_index: page that answers best; `span` and `text` stand on it.
        pages: every page the passage touches.
        page_label: printed label of `page_index`.
        span: where the passage begins on `page_index`.
        text: the part of the passage on `page_index`.
        why: contributions to the score: "words" and "vectors" (standardised), "neighbour" (1.0: added as the
            continuation of a better hit).
    """

    document_id: DocumentId
    document: str
    passage: Passage
    score: float
    page_index: int
    pages: tuple[int, ...]
    page_label: str
    span: CharRange
    text: str
    why: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PageReport:
    """What intake made of one page; `reason` says why its kind is not "text", or what was done for it."""

    page_index: int
    label: str
    kind: PageKind
    characters: int
    reason: str = ""


MISSING_LETTERS = "letters are missing: their font does not say which they are."


def lacks_letters(page: PageReport) -> bool:
    """It can be read, but its words are broken where letters are missing."""
    return page.kind == "text" and page.reason.endswith(MISSING_LETTERS)


@dataclass(frozen=True)
class IntakeReport:
    """`note`: what is wrong with the file as a whole; "" when nothing is."""

    document: Document
    pages: tuple[PageReport, ...]
    note: str = ""


@dataclass(frozen=True)
class Renewed:
    """What was brought up to date: the number of documents whose words were indexed anew, and those of them whose text
    was read anew from the file; `failed`: why others could not be read, which keep their text."""

    words: int = 0
    read_anew: tuple[DocumentId, ...] = ()
    failed: tuple[DocumentError, ...] = ()

    def __add__(self, other: Renewed) -> Renewed:
        return Renewed(self.words + other.words, (*self.read_anew, *other.read_anew), (*self.failed, *other.failed))


@dataclass(frozen=True)
class Outline:
    """An entry of the PDF's own table of contents; `page_index` is None where it points nowhere."""

    title: str
    page_index: int | None
    level: int


@dataclass(frozen=True)
class IngestProgress:
    """`done` of `total` pages (of scanned ones for "recognise", of windows for "vectors", of bytes for "copy")."""

    path: Path
    document_id: DocumentId | None
    phase: IngestPhase
    done: int
    total: int


@dataclass(frozen=True)
class Citation:
    """What in the documents stands behind a part of an answer.

    Attributes:
        marker: number of the passage in the context, as the prompt showed it; 0 for a quotation without one.
        document_id: None for a marker that is not in the context.
        ranges: exactly the supporting sentence or quote.
        page_labels: printed labels, one per range.
        quote: stored text of `ranges`, white space collapsed.
        verified: "exact": at least six words of the answer, or a quotation, stand there verbatim, and the
            sentence around them does not change what is said; "altered": nearly so;
            "matched": Pagekeep found it by its content words; "not_found": the marker is invented, the
            passage it names does not say so, or a quotation stands nowhere (then `ranges` is empty).
        answer_start, answer_count: part of the answer this citation supports, in characters.
    """

    marker: int
    document_id: DocumentId | None
    document: str
    ranges: tuple[CharRange, ...]
    page_labels: tuple[str, ...]
    quote: str
    verified: Verdict
    answer_start: int
    answer_count: int
