"""Where a question looks: the scope that the reader set, or the pages and chapters that the question names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.core.errors import UserError
from app.core.lookups import Scope
from rag.page_names import listed_pages, may_name_pages, named_pages
from rag.scope import Chapter, may_name_chapter, named_chapter
from rag.types import DocumentId, Passage

if TYPE_CHECKING:
    from rag import Library


@dataclass(frozen=True)
class Searched:
    """Documents and pages that a look-up covers. `from_words`: the question itself named them."""

    documents: tuple[int, ...]
    pages: Mapping[DocumentId, Sequence[int]] = field(default_factory=dict)
    label: str = ""
    from_words: bool = False
    selection: Scope | None = None

    @property
    def is_part(self) -> bool:
        """Less than the whole documents."""
        return bool(self.pages)

    def has(self, passage: Passage) -> bool:
        if self.selection is not None:
            return _overlaps(passage, self.selection)
        pages = self.pages.get(passage.document_id)
        return int(passage.document_id) in self.documents and (
            pages is None or any(part.page_index in pages for part in passage.ranges)
        )


def _overlaps(passage: Passage, selection: Scope) -> bool:
    start, end = selection.char_start, selection.char_start + selection.char_count
    return int(passage.document_id) == selection.document_id and any(
        part.page_index == selection.first and part.char_start < end and start < part.char_start + part.char_count
        for part in passage.ranges
    )


class Scopes:
    """Resolves scopes against the library; thread-safe."""

    def __init__(self, library: Callable[[], Library]) -> None:
        self._library = library

    def of(self, scope: Scope | None, question: str, documents: Sequence[int]) -> Searched:
        """`documents`: those of the conversation that can be searched."""
        if scope is not None:
            return self._set(scope, documents)
        return self._named(question, documents) or Searched(tuple(documents))

    def chapters(self, document: int) -> list[Chapter]:
        return self._library().chapters(DocumentId(document))

    def by_pages(self, document: int, text: str) -> Scope:
        """Printed labels as "iv", "10-20" or "3-7, 12". Raises UserError."""
        labels = self.labels(document)
        found = listed_pages(text, labels)
        if not found:
            first, last = labels[0] if labels else "1", labels[-1] if labels else "1"
            raise UserError(
                f"There are no pages “{text}” in this document.",
                f"Its pages are {first} to {last}.",
                "Give pages, and ranges with a dash between the first and the last, as 3-7, 12.",
            )
        return _pages_scope(document, found, labels)

    def by_chapter(self, document: int, name: str) -> Scope:
        """By number ("3", "3.1") or by title, or a part of it. Raises UserError."""
        found = self.chapters(document)
        folded = name.casefold().strip()
        chapter = named_chapter(f"chapter {name}", found) or next(
            (one for one in found if folded and folded in one.title.casefold()), None
        )
        if chapter is None:
            named = ", ".join(one.title for one in found if one.level == 0) or "it has no outline"
            raise UserError(
                f"There is no chapter “{name}” in this document.",
                f"Its outline: {named[:300]}.",
                "Give a chapter's number or a part of its title, or choose pages.",
            )
        return chapter_scope(document, chapter)

    def labels(self, document: int) -> list[str]:
        """Printed labels by page."""
        return self._library().page_labels(DocumentId(document))

    def _set(self, scope: Scope, documents: Sequence[int]) -> Searched:
        if scope.collection:
            found = [int(d.id) for d in self._library().in_collection(scope.collection)]
            return Searched(
                tuple(d for d in found if self._library().document(DocumentId(d)).state != "importing"), {}, scope.label
            )
        if scope.document_id is None or scope.document_id not in documents:
            return Searched(tuple(documents))
        document = DocumentId(scope.document_id)
        if scope.last < 0:
            return Searched((scope.document_id,), {}, scope.label)
        selection = scope if scope.is_selection else None
        return Searched((scope.document_id,), {document: scope.pages}, scope.label, selection=selection)

    def _named(self, question: str, documents: Sequence[int]) -> Searched | None:
        """Pages or a chapter that the question names, when exactly one of the documents has them."""
        found = [scope for document in documents if (scope := self._named_in(question, document)) is not None]
        if len(found) != 1 or found[0].document_id is None:
            return None
        scope = found[0]
        pages = {DocumentId(found[0].document_id): scope.pages}
        return Searched((found[0].document_id,), pages, scope.label, from_words=True)

    def _named_in(self, question: str, document: int) -> Scope | None:
        if may_name_pages(question):
            labels = self.labels(document)
            pages = named_pages(question, labels)
            if pages is not None:
                return _pages_scope(document, pages, labels)
        if may_name_chapter(question):
            chapter = named_chapter(question, self.chapters(document))
            return chapter_scope(document, chapter) if chapter is not None else None
        return None


def chapter_scope(document: int, chapter: Chapter) -> Scope:
    return Scope(chapter.title, document, chapter.first, chapter.last)


def _pages_scope(document: int, ranges: Sequence[range], labels: Sequence[str]) -> Scope:
    first, *more = ((pages[0], pages[-1]) for pages in ranges)
    names = [labels[a] if a == b else f"{labels[a]}–{labels[b]}" for a, b in (first, *more)]
    label = f"{'page' if sum(map(len, ranges)) == 1 else 'pages'} {', '.join(names)}"
    return Scope(label, document, *first, more=tuple(more))
