"""Documents of which nothing can be read: told before a model is asked, which would make its answer up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.core.documents import DocumentTexts
from app.core.errors import NothingReadable
from app.core.scoping import Searched
from rag.sizes import plural

if TYPE_CHECKING:
    from rag.types import Document


def require_text(texts: DocumentTexts, searched: Searched) -> None:
    """Raises NothingReadable where what is searched has pages and no text on any of them."""
    if not searched.documents or any(_has_text(texts, searched, document) for document in searched.documents):
        return
    documents = [texts.document(document) for document in searched.documents]
    pages = [_pages(document, searched) for document in documents]
    scans = {d: found for d, chosen in zip(documents, pages, strict=True) if (found := _scans(d, chosen))}
    total = sum(map(len, pages))
    none = f"{_none_of(searched, total)} of {_where(documents)}"
    other = "ask without naming the page" if searched.from_words else "ask about other pages"
    if not scans:
        why = "There is nothing that a model could answer from."
        raise NothingReadable(f"{none} has text.", why, f"{other.capitalize()}.")
    also = f"; or {other}" if searched.label else ""
    raise _only_scans(list(scans), sum(scans.values()), total, none, also)


def _only_scans(documents: Sequence[Document], scans: int, total: int, none: str, also: str) -> NothingReadable:
    among = "They are" if scans == total > 1 else "It is" if total == 1 else f"{scans:,} of them are"
    return NothingReadable(
        f"{none} can be read.",
        f"{among} scanned or garbled; there is nothing that a model could answer from.",
        f"Read them with OCR: “Read the scans” in the library, or pagekeep index ocr '{documents[0].name}'{also}",
        tuple(int(document.id) for document in documents),
    )


def _scans(document: Document, chosen: Sequence[int]) -> int:
    return len(set(document.unreadable_pages) & set(chosen))


def _has_text(texts: DocumentTexts, searched: Searched, document: int) -> bool:
    return any(searched.has(passage) for passage in texts.whole(document).passages)


def _pages(document: Document, searched: Searched) -> Sequence[int]:
    return searched.pages.get(document.id, range(document.pages))


def _none_of(searched: Searched, pages: int) -> str:
    if pages > 1:
        return f"None of the {plural(pages, 'page')}"
    return f"Nothing on {searched.label or 'the only page'}"


def _where(documents: Sequence[Document]) -> str:
    return documents[0].name if len(documents) == 1 else f"{len(documents)} documents"
