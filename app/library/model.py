"""Documents and running imports as rows; imports stand on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from app.core.events import JobId
from app.widgets.format import count, plural, size
from app.widgets.rows import FACE, RowFace

if TYPE_CHECKING:
    from rag import Document, IngestProgress

_PHASE_WORDS = {
    "copy": "copying",
    "text": "reading text",
    "words": "indexing words",
    "vectors": "indexing meaning",
    "done": "finishing",
}


@dataclass(frozen=True)
class Import:
    job: JobId
    path: Path
    progress: IngestProgress | None = None


def progress_words(progress: IngestProgress | None) -> str:
    """`reading text: page 312 of 1,158`."""
    if progress is None:
        return "waiting"
    words = _PHASE_WORDS[progress.phase]
    if not progress.total:
        return words
    if progress.phase == "copy":
        return f"{words}: {size(progress.done)} of {size(progress.total)}"
    unit = "page " if progress.phase == "text" else ""
    return f"{words}: {unit}{count(progress.done)} of {count(progress.total)}"


def import_face(one: Import, name: str) -> RowFace:
    progress = one.progress
    part = progress.done / progress.total if progress is not None and progress.total else 0.0
    return RowFace(name, progress_words(progress), "document", "accent", "muted", progress=part)


def document_face(document: Document) -> RowFace:
    pages = plural(document.pages, "page")
    if document.state == "importing":
        return RowFace(document.name, f"{pages}, import was stopped", "pause", "warn", "warn")
    if document.unreadable_pages:
        unread = len(document.unreadable_pages)
        return RowFace(
            document.name, f"{pages}, {count(unread)} without readable text", "warning", "warn", "warn"
        )
    ready = "ready" if document.state == "ready" else "searchable by words"
    return RowFace(document.name, f"{pages}, {ready}", "document")


class LibraryModel(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self._imports: list[Import] = []
        self._documents: list[Document] = []

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return len(self._imports) + len(self._documents)

    def data(
        self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        shown = self._face(index.row())
        if role == FACE:
            return shown
        if role == Qt.ItemDataRole.DisplayRole:
            return shown.title
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            return f"{shown.title}, {shown.detail}"
        return None

    # --- documents --------------------------------------------------------------------------------
    def show_documents(self, documents: Sequence[Document]) -> None:
        self.beginResetModel()
        self._documents = sorted(documents, key=lambda d: -d.added)
        self.endResetModel()

    def put(self, document: Document) -> None:
        places = [place for place, known in enumerate(self._documents) if known.id == document.id]
        if places:
            self._documents[places[0]] = document
            self._changed(len(self._imports) + places[0])
        else:
            top = len(self._imports)
            self.beginInsertRows(QModelIndex(), top, top)
            self._documents.insert(0, document)
            self.endInsertRows()

    def remove(self, document: int) -> None:
        for place, known in enumerate(self._documents):
            if known.id == document:
                row = len(self._imports) + place
                self.beginRemoveRows(QModelIndex(), row, row)
                del self._documents[place]
                self.endRemoveRows()
                return

    def document(self, row: int) -> Document | None:
        place = row - len(self._imports)
        return self._documents[place] if 0 <= place < len(self._documents) else None

    def names(self) -> dict[int, str]:
        return {int(document.id): document.name for document in self._documents}

    def documents(self) -> list[Document]:
        return list(self._documents)

    # --- imports ----------------------------------------------------------------------------------
    def begin_import(self, job: JobId, path: Path) -> None:
        if self._place(job) is None:
            end = len(self._imports)
            self.beginInsertRows(QModelIndex(), end, end)
            self._imports.append(Import(job, path))
            self.endInsertRows()

    def show_progress(self, job: JobId, progress: IngestProgress) -> None:
        place = self._place(job)
        if place is not None:
            self._imports[place] = replace(self._imports[place], progress=progress)
            self._changed(place)

    def end_import(self, job: JobId) -> None:
        place = self._place(job)
        if place is not None:
            self.beginRemoveRows(QModelIndex(), place, place)
            del self._imports[place]
            self.endRemoveRows()

    def import_at(self, row: int) -> Import | None:
        return self._imports[row] if 0 <= row < len(self._imports) else None

    def name(self, one: Import) -> str:
        """Of the document, where the import is of one that the library knows already."""
        known = one.progress.document_id if one.progress is not None else None
        return next((d.name for d in self._documents if d.id == known), one.path.name)

    def imports(self) -> list[Import]:
        return list(self._imports)

    def _place(self, job: JobId) -> int | None:
        return next((place for place, one in enumerate(self._imports) if one.job == job), None)

    def _face(self, row: int) -> RowFace:
        running = self.import_at(row)
        if running is not None:
            return import_face(running, self.name(running))
        return document_face(self._documents[row - len(self._imports)])

    def _changed(self, row: int) -> None:
        self.dataChanged.emit(self.index(row), self.index(row))
