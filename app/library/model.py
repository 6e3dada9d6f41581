"""Documents and imports as rows; what is being imported stands on top, what waits below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from app.core.events import JobId
from app.core.import_words import import_words
from app.widgets.format import count, duration, plural
from app.widgets.rows import FACE, RowFace
from engine.messages import ModelLoaded
from rag.sizes import size_text

if TYPE_CHECKING:
    from rag import Document, IngestProgress

_RECORD_HEAD = 4096  # bytes before each page's state on disk


@dataclass(frozen=True)
class Import:
    job: JobId
    path: Path
    progress: IngestProgress | None = None


def import_face(one: Import, name: str) -> RowFace:
    progress = one.progress
    part = progress.done / progress.total if progress is not None and progress.total else 0.0
    return RowFace(name, import_words(progress), "document", "accent", "muted", progress=part)


@dataclass(frozen=True)
class ReadWhole:
    """What the model keeps of a whole document, in bytes, and how long it took to read; 0.0: another time."""

    size: int
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """`read in 12 s, 34 MB`."""
        took = f" in {duration(self.seconds)}" if self.seconds else ""
        return f"read{took}, {size_text(self.size)}"


def kept_bytes(tokens: int, model: ModelLoaded) -> int:
    """What a document of so many tokens takes on disk, as `pagekeep cache ls` counts it."""
    return tokens * model.kv_bytes_per_token + -(-tokens // model.page_tokens) * _RECORD_HEAD


def document_face(document: Document, read: ReadWhole | None = None, elsewhere: bool = False) -> RowFace:
    """`read`: None where nothing is known. `elsewhere`: another process takes it in."""
    pages = plural(document.pages, "page")
    if elsewhere:
        return RowFace(document.name, f"{pages}, being imported elsewhere", "document", "accent", "muted", busy=True)
    if document.state == "importing":
        return RowFace(document.name, f"{pages}, import was stopped", "pause", "warn", "warn")
    kept = f", {read.words}" if read is not None else ""
    if document.unreadable_pages:
        unread = len(document.unreadable_pages)
        words = f"{pages}, {count(unread)} without readable text{kept}"
        brief = f"{count(unread)} of {pages} unreadable"
        return RowFace(document.name, words, "warning", "warn", "warn", brief=brief)
    if document.note:
        brief = f"{pages}, damaged"
        return RowFace(document.name, f"{pages}, damaged file{kept}", "warning", "warn", "warn", brief=brief)
    ready = "ready" if document.state == "ready" else "searchable by words"
    return RowFace(document.name, f"{pages}{kept or f', {ready}'}", "document")


def file_lines(document: Document) -> list[str]:
    """What is wrong with the file, and the other names under which it came."""
    names = f"Also added as {', '.join(document.other_names)}" if document.other_names else ""
    return [line for line in (document.note, names) if line]


class LibraryModel(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self._imports: dict[JobId, Import] = {}
        self.is_read = False  # until then it is not known which documents there are
        self._documents: list[Document] = []
        self._trashed: dict[int, str] = {}
        self._read: dict[int, ReadWhole] = {}
        self._only: frozenset[int] | None = None  # documents that are shown; None: all
        self._words: tuple[str, ...] = ()  # in the names of those that are shown
        self._running: frozenset[int] = frozenset()  # documents that a process is taking in
        self._elsewhere: frozenset[int] = frozenset()  # those of them that surely are another's
        self._rows: list[Import | Document] = []  # an import of a document that is in the list has no row of its own

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return len(self._rows)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        shown = self._face(index.row())
        if role == FACE:
            return shown
        if role == Qt.ItemDataRole.DisplayRole:
            return shown.title
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            document = self.document(index.row())
            return "\n".join((f"{shown.title}, {shown.detail}", *(file_lines(document) if document else ())))
        return None

    # --- documents --------------------------------------------------------------------------------
    def show_documents(self, documents: Sequence[Document]) -> None:
        """Those in the trash are no rows, only known by name."""
        self.is_read = True
        with self._rebuilding():
            self._documents, self._trashed = _sorted(documents)

    def differs(self, documents: Sequence[Document]) -> bool:
        return _sorted(documents) != (self._documents, self._trashed)

    @property
    def running(self) -> bool:
        return bool(self._running)

    def show_running(self, documents: frozenset[int]) -> frozenset[int]:
        """Those that a process takes in; imports of this one are shown by their progress. Returns those that another
        process no longer takes in."""
        ended = self._elsewhere - documents
        ours = [one.progress and one.progress.document_id for one in self._imports.values()]
        self._elsewhere = documents.difference(ours) if None not in ours else self._elsewhere & documents
        if documents != self._running:
            with self._rebuilding():
                self._running = documents
        return ended

    def put(self, document: Document) -> None:
        places = [place for place, known in enumerate(self._documents) if known.id == document.id]
        with self._rebuilding():
            if places:
                self._documents[places[0]] = document
            else:
                self._documents.insert(0, document)

    def remove(self, document: int) -> None:
        """Into the trash."""
        with self._rebuilding():
            self._trashed.update((int(known.id), known.name) for known in self._documents if known.id == document)
            self._documents = [known for known in self._documents if known.id != document]

    def document(self, row: int) -> Document | None:
        found = self._rows[row] if 0 <= row < len(self._rows) else None
        return None if isinstance(found, Import) else found

    def show_only(self, documents: frozenset[int] | None) -> None:
        """Ids of those that are shown; None: all."""
        with self._rebuilding():
            self._only = documents

    def show_named(self, words: str) -> None:
        """Only documents whose name holds these words, in any order; "": all."""
        with self._rebuilding():
            self._words = tuple(words.casefold().split())

    def place(self, document: int) -> int | None:
        """Its row."""
        rows = (row for row, one in enumerate(self._rows) if not isinstance(one, Import) and one.id == document)
        return next(rows, None)

    def names(self) -> dict[int, str]:
        return {int(document.id): document.name for document in self._documents}

    def trashed(self) -> dict[int, str]:
        """Names of the documents in the trash."""
        return dict(self._trashed)

    def documents(self) -> list[Document]:
        return list(self._documents)

    def show_read(self, document: int, read: ReadWhole) -> None:
        """The model has read it whole."""
        with self._rebuilding():
            self._read[document] = read

    def forget_read(self) -> None:
        with self._rebuilding():
            self._read.clear()

    # --- imports ----------------------------------------------------------------------------------
    def begin_import(self, job: JobId, path: Path) -> None:
        if job not in self._imports:
            with self._rebuilding():
                self._imports[job] = Import(job, path)

    def show_progress(self, job: JobId, progress: IngestProgress) -> None:
        if job not in self._imports:
            return
        one = replace(self._imports[job], progress=progress)
        known = self._imports[job].progress
        if known is not None and known.document_id == progress.document_id:
            self._imports[job] = one
            self._rows = [one if isinstance(row, Import) and row.job == job else row for row in self._rows]
            self.dataChanged.emit(self.index(0), self.index(self.rowCount() - 1))
        else:
            with self._rebuilding():
                self._imports[job] = one

    def end_import(self, job: JobId) -> None:
        if job in self._imports:
            with self._rebuilding():
                del self._imports[job]

    def import_at(self, row: int) -> Import | None:
        """The import a row shows, be it of a new document or of one that is in the library already."""
        found = self._rows[row] if 0 <= row < len(self._rows) else None
        return found if found is None or isinstance(found, Import) else self._import_of(found)

    def name(self, one: Import) -> str:
        known = one.progress.document_id if one.progress is not None else None
        return next((d.name for d in self._documents if d.id == known), one.path.name)

    def imports(self) -> list[Import]:
        return list(self._imports.values())

    @contextmanager
    def _rebuilding(self) -> Iterator[None]:
        """Rows come or go; seldom enough to lay all of them out again."""
        self.beginResetModel()
        try:
            yield
            self._rows = self._laid_out()
        finally:
            self.endResetModel()

    def _laid_out(self) -> list[Import | Document]:
        """What is being imported, then what waits for it, then the others."""
        known = {document.id for document in self._documents}
        begun = {_document(one) for one in self._imports.values()}
        shown = [document for document in self._documents if self._is_shown(document)]
        return [
            *(document for document in shown if document.id in begun),
            *(one for one in self._imports.values() if _document(one) not in known),
            *(document for document in shown if document.id not in begun),
        ]

    def _is_shown(self, document: Document) -> bool:
        chosen = self._only is None or int(document.id) in self._only
        return chosen and all(word in document.name.casefold() for word in self._words)

    def _import_of(self, document: Document) -> Import | None:
        return next((one for one in self._imports.values() if _document(one) == document.id), None)

    def _face(self, row: int) -> RowFace:
        running = self.import_at(row)
        if running is not None:
            return import_face(running, self.name(running))
        document = self.document(row)
        assert document is not None
        elsewhere = document.state == "importing" and int(document.id) in self._running
        return document_face(document, self._read.get(int(document.id)), elsewhere)


def _sorted(documents: Sequence[Document]) -> tuple[list[Document], dict[int, str]]:
    """The newest first, and the names of those in the trash."""
    kept = sorted((one for one in documents if one.state != "trashed"), key=lambda d: -d.added)
    return kept, {int(one.id): one.name for one in documents if one.state == "trashed"}


def _document(one: Import) -> int | None:
    return one.progress.document_id if one.progress is not None else None
