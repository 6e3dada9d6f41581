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
    if not scans:
        what = f"{_none_of(total)} of {_where(documents)} has text."
        raise NothingReadable(what, "There is nothing that a model could answer from.", "Ask about other pages.")
    raise _only_scans(list(scans), sum(scans.values()), total, _where(documents))


def _only_scans(documents: Sequence[Document], scans: int, total: int, where: str) -> NothingReadable:
    among = "They are" if scans == total > 1 else "It is" if total == 1 else f"{scans:,} of them are"
    return NothingReadable(
        f"{_none_of(total)} of {where} can be read.",
        f"{among} scanned or garbled; there is nothing that a model could answer from.",
        f"Read them with OCR: “Read the scans” in the library, or pagekeep index ocr '{documents[0].name}'",
        tuple(int(document.id) for document in documents),
    )


def _scans(document: Document, chosen: Sequence[int]) -> int:
    return len(set(document.unreadable_pages) & set(chosen))


def _has_text(texts: DocumentTexts, searched: Searched, document: int) -> bool:
    return any(searched.has(passage) for passage in texts.whole(document).passages)


def _pages(document: Document, searched: Searched) -> Sequence[int]:
    return searched.pages.get(document.id, range(document.pages))


def _none_of(pages: int) -> str:
    return "Not the one page" if pages == 1 else f"None of the {plural(pages, 'page')}"


def _where(documents: Sequence[Document]) -> str:
    return documents[0].name if len(documents) == 1 else f"{len(documents)} documents"
