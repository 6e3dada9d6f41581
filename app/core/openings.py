"""How documents begin: what is given where nothing was found, and where a question is about a document as such."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from app.core.documents import DocumentTexts
from app.core.scoping import Searched
from app.core.searches import beginning_hit
from rag.types import DocumentId, Hit, Passage

if TYPE_CHECKING:
    from rag import Library

FIRST_PAGES = 5  # on which a document says what it is
OPENING_PASSAGES = 2


def beginning(texts: DocumentTexts, library: Library, searched: Searched, most: int) -> list[Hit]:
    """How the parts of a chosen scope begin, where nothing in it was found; () where everything was searched."""
    if not searched.label or not searched.documents:
        return []
    firsts = _firsts(texts, searched, most, max(1, most // len(searched.documents)))
    return [beginning_hit(passage, library) for passage in firsts]


def opening(texts: DocumentTexts, library: Library, searched: Searched, most: int) -> list[Hit]:
    """The first passages of the documents searched, as far as they stand on their first pages: two of one, one each of
    several."""
    hits = _opening(texts, library, searched, most)
    return [hit for hit in hits if hit.page_index < FIRST_PAGES]


def introduction(texts: DocumentTexts, library: Library, searched: Searched, most: int) -> list[Hit]:
    """The same wherever they stand, without tables of contents: what the documents are about."""
    return _opening(texts, library, replace(searched, pages=_told_pages(library, searched)), most)


def _opening(texts: DocumentTexts, library: Library, searched: Searched, most: int) -> list[Hit]:
    firsts = _firsts(texts, searched, most, OPENING_PASSAGES if len(searched.documents) == 1 else 1)
    return [replace(beginning_hit(passage, library), why={"opening": 1.0}) for passage in firsts]


def _told_pages(library: Library, searched: Searched) -> dict[DocumentId, Sequence[int]]:
    """Those searched that are no tables of contents; all where nothing else is left."""
    found: dict[DocumentId, Sequence[int]] = {}
    for document in map(DocumentId, searched.documents):
        listed = library.listing_pages(document)
        pages = searched.pages.get(document, range(library.document(document).pages))
        found[document] = [page for page in pages if page not in listed] or pages
    return found


def _firsts(texts: DocumentTexts, searched: Searched, most: int, each: int) -> Iterator[Passage]:
    """`each` of at most `most` documents."""
    for document in searched.documents[:most]:
        yield from islice(filter(searched.has, texts.whole(document).passages), each)
