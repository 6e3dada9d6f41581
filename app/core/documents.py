"""Documents as the prompt needs them, kept in memory: a document only changes when its scans are read or its text is
read anew, in this process or another; its revision tells."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from app.core.errors import UserError
from app.core.prompt import WholeDocument
from app.core.records import PageUse, PlacedPassages
from rag.types import Document, DocumentId, Passage

if TYPE_CHECKING:
    from rag import Library

KEPT_DOCUMENTS = 8
CHARACTERS_PER_TOKEN = 3.3  # of English text, generously


class DocumentTexts:
    """Passages of the documents used last; thread-safe."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._kept: dict[int, tuple[int, WholeDocument]] = {}  # with their revision

    def whole(self, document: int) -> WholeDocument:
        """Raises DocumentError when it is not in the library."""
        revision = self._library().revision(DocumentId(document))
        with self._lock:
            known, found = self._kept.pop(document, (-1, None))
        if found is None or known != revision:
            library = self._library()
            passages = tuple(library.passages(DocumentId(document)))
            found = WholeDocument(document, library.document(DocumentId(document)).name, passages)
        with self._lock:
            self._kept[document] = revision, found
            while len(self._kept) > KEPT_DOCUMENTS:
                self._kept.pop(next(iter(self._kept)))
        return found

    def document(self, document: int) -> Document:
        return self._library().document(DocumentId(document))

    def state(self, document: int) -> str:
        """The library's state of it, "gone" when it is not there."""
        from rag.errors import DocumentError

        try:
            return self.document(document).state
        except DocumentError:
            return "gone"

    def readable(self, document: int) -> bool:
        """It is in the library, not in the trash, and its words are indexed."""
        return self.state(document) in ("words", "ready")

    def require_read(self, documents: Sequence[int]) -> None:
        """Raises UserError while one of them is still being imported: an answer would miss it unseen."""
        for document in documents:
            if self.state(document) == "importing":
                name = self.document(document).name
                raise UserError(
                    f"{name} is still being read.",
                    "Its import has not come to its last page.",
                    "Wait for it, or take it out of this conversation.",
                )

    def characters(self, document: int) -> int:
        return self.document(document).characters

    def about_tokens(self, documents: Sequence[int], pages: Mapping[DocumentId, Sequence[int]]) -> int:
        """About what reading them takes, `pages` where not all of one: counting is too slow for a price."""
        characters = 0
        for known in map(self.document, documents):
            chosen = pages.get(known.id, range(known.pages))
            characters += known.characters * len(chosen) // max(1, known.pages)
        return int(characters / CHARACTERS_PER_TOKEN)

    def passage_ids(self, document: int) -> tuple[int, ...]:
        return tuple(passage.id for passage in self.whole(document).passages)

    def placed(self, placed: PlacedPassages) -> tuple[Passage, ...]:
        """The passages that a message put into the context; those that are gone are left out."""
        by_id = {passage.id: passage for passage in self.whole(placed.document_id).passages}
        return tuple(by_id[i] for i in placed.passage_ids if i in by_id)

    def names(self, documents: Sequence[int]) -> dict[int, str]:
        """Names of those that are still in the library."""
        return {d: self.document(d).name for d in documents if self.readable(d)}


def pages_in_context(
    whole: Sequence[Document], passages: Sequence[Passage], unreadable: Mapping[int, int] | None = None
) -> tuple[PageUse, ...]:
    """Pages the model has in its context, by document; of one that is there whole those that could be read.

    `unreadable`: how many pages of the others could not be read.
    """
    used = {int(d.id): _whole_use(d) for d in whole}
    found: dict[int, set[int]] = {}
    for passage in passages:
        pages = found.setdefault(int(passage.document_id), set())
        pages.update(passage.pages)
    lost = unreadable or {}
    parts = {d: PageUse(d, tuple(sorted(p)), False, lost.get(d, 0)) for d, p in found.items() if d not in used}
    return tuple(use for _, use in sorted({**used, **parts}.items()))


def _whole_use(document: Document) -> PageUse:
    lost = set(document.unreadable_pages)
    readable = tuple(page for page in range(document.pages) if page not in lost)
    return PageUse(int(document.id), readable, whole=True, unreadable=len(lost))
