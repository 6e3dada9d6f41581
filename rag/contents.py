"""What the library holds: documents, their pages, passages and where they stand."""

from __future__ import annotations

import json

from rag import reread
from rag.context import whole_document_text
from rag.errors import DocumentError
from rag.index import records
from rag.ingest import Shelf
from rag.scope import Chapter, chapters
from rag.types import CharRange, Document, DocumentId, IntakeReport, Outline, Passage


class Contents:
    """Reading access to a shelf; the part of `rag.Library` that changes nothing."""

    _shelf: Shelf

    def documents(self, include_trashed: bool = False) -> list[Document]:
        """In the order they were added."""
        return self._documents("1" if include_trashed else "trashed IS NULL")

    def changes(self) -> int:
        """A number that is another one after this or another process has changed the library. Takes microseconds."""
        return self._shelf.db.changes()

    def document(self, document_id: DocumentId) -> Document:
        """Errors: DocumentError of kind "unknown_document"."""
        found = self._documents("id = ?2", document_id)
        if not found:
            raise records.unknown(document_id)
        return found[0]

    def revision(self, document_id: DocumentId) -> int:
        """Another number after its text came out otherwise, in this or another process; -1: there is no such document.
        Takes a tenth of a millisecond."""
        rows = self._shelf.db.tuples("SELECT revision FROM documents WHERE id = ?", (document_id,))
        return int(rows[0][0]) if rows else -1

    def report(self, document_id: DocumentId) -> IntakeReport:
        """What intake made of each page."""
        pages = records.page_reports(self._shelf.db, document_id)
        (row,) = self._shelf.db.rows("SELECT note FROM documents WHERE id = ?", (document_id,))
        notes = [row["note"], reread.READ_BEFORE if reread.concerned(self._shelf, document_id) else ""]
        return IntakeReport(self.document(document_id), tuple(pages), " ".join(filter(None, notes)))

    def outline(self, document_id: DocumentId) -> list[Outline]:
        return records.outline(self._shelf.db, document_id)

    def chapters(self, document_id: DocumentId) -> list[Chapter]:
        """The outline's entries with their numbers and pages."""
        found = self.outline(document_id)
        begun = sorted({entry.page_index for entry in found if entry.page_index is not None})
        texts = self._shelf.db.tuples(
            "SELECT page_index, text FROM pages WHERE document_id = ?"
            " AND page_index IN (SELECT value FROM json_each(?))",
            (document_id, json.dumps(begun)),
        )
        return chapters(found, self.document(document_id).pages, dict(texts))

    def page_label(self, document_id: DocumentId, page_index: int) -> str:
        """The printed label; the file's page number (from 1) where the PDF has none."""
        row = self._shelf.db.row(
            "SELECT label FROM labels WHERE document_id = ? AND page_index = ?", (document_id, page_index)
        )
        return str(row["label"]) if row else str(page_index + 1)

    def page_labels(self, document_id: DocumentId) -> list[str]:
        """Those of all pages, as `page_label`."""
        rows = self._shelf.db.tuples("SELECT page_index, label FROM labels WHERE document_id = ?", (document_id,))
        labels = dict(rows)
        return [str(labels.get(page, page + 1)) for page in range(self.document(document_id).pages)]

    def listing_pages(self, document_id: DocumentId) -> frozenset[int]:
        """Pages of tables of contents and indexes."""
        rows = self._shelf.db.tuples(
            "SELECT page_index FROM pages WHERE document_id = ? AND listing = 1", (document_id,)
        )
        return frozenset(page for (page,) in rows)

    def page_text(self, document_id: DocumentId, page_index: int) -> str:
        """The page's text with hyphenated words joined and ligatures expanded; empty if there is none."""
        row = self._shelf.db.row(
            "SELECT text FROM pages WHERE document_id = ? AND page_index = ?", (document_id, page_index)
        )
        return str(row["text"]) if row else ""

    def passages(self, document_id: DocumentId) -> list[Passage]:
        """All passages in reading order."""
        return records.passages(self._shelf.db, "document_id = ?", (document_id,))

    def passage(self, passage_id: int) -> Passage:
        found = records.passages(self._shelf.db, "id = ?", (passage_id,))
        if not found:
            why = "Its document was removed or read anew."
            raise DocumentError("This passage is no longer there.", why, "Ask again.", "unknown_document")
        return found[0]

    def neighbours(self, passage: Passage) -> list[Passage]:
        """The passages right after and right before one, in this order."""
        near = (passage.document_id, passage.index - 1, passage.index + 1)
        found = records.passages(self._shelf.db, "document_id = ? AND ordinal IN (?, ?)", near)
        return found[::-1]

    def first_part(self, passage: Passage) -> str:
        """The passage's text as far as it stands on its first page."""
        return passage.text[: records.passage_pieces(self._shelf.db, passage.id)[0].count]

    def whole(self, document_id: DocumentId) -> str:
        """The document's text in reading order, for a prompt."""
        return whole_document_text(self.document(document_id), self.passages(document_id))

    def ranges(self, passage: Passage, start: int, count: int) -> tuple[CharRange, ...]:
        """Where `count` characters from `start` of the passage's text stand, in reading order; one range per page, more
        only where the page had to be put in order."""
        found: list[CharRange] = []
        offset = 0
        for piece in records.passage_pieces(self._shelf.db, passage.id):
            first, last = max(start, offset), min(start + count, offset + piece.count)
            if first < last:
                at = piece.start + first - offset
                found += records.locate(self._shelf.db, passage.document_id, piece.page_index, at, last - first)
            offset += piece.count + 1
        return tuple(found)

    def windows_without_vectors(self) -> int:
        """Of all documents that are not in the trash, by the present embedder; 0 without one."""
        embedder = self._shelf.embedder.name if self._shelf.embedder else ""
        rows = self._shelf.db.tuples(
            "SELECT sum(windows - coalesce((SELECT done FROM vectors WHERE document_id = id AND embedder = ?), 0))"
            " FROM documents WHERE trashed IS NULL",
            (embedder,),
        )
        return int(rows[0][0] or 0) if embedder else 0

    def _documents(self, where: str, *values: object) -> list[Document]:
        embedder = self._shelf.embedder.name if self._shelf.embedder else ""
        return records.documents(self._shelf.db, self._shelf.files, embedder, where, values)
