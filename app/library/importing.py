"""Imports in the window: begun by the reader, followed by events, told when they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.core import events
from app.core.errors import UserError
from app.library.errors import ErrorList
from app.library.model import LibraryModel
from app.library.password import ask_password
from app.services import Services
from app.widgets.cards import ErrorCard
from app.widgets.theme import ASSETS
from engine.messages import ConversationId

if TYPE_CHECKING:
    from rag import Document

SAMPLE = ASSETS / "sample" / "pagekeep-sample.pdf"


class Importing(QObject):
    """Signals:
    moved: an import began, went on or ended.
    taken: a document is in the library.
    stale: the library's list is to be read again.
    report_wanted: the intake report of a document should be shown (argument: Document).
    """

    moved = Signal()
    taken = Signal()
    stale = Signal()
    report_wanted = Signal(object)

    def __init__(self, services: Services, panel: QWidget, rows: LibraryModel, errors: ErrorList) -> None:
        super().__init__(panel)
        self._services = services
        self._panel = panel
        self._rows = rows
        self._errors = errors
        self._attach_to: ConversationId | None = None
        self._wanted_by: dict[Path, ConversationId | None] = {}  # files, with the conversation they were added in

    def set_conversation(self, conversation: ConversationId | None) -> None:
        """New imports are attached to the conversation the reader is in."""
        self._attach_to = conversation

    # --- what the reader wants --------------------------------------------------------------------
    def choose_files(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self._panel, "Add PDFs", "", "PDF documents (*.pdf);;All files (*)")
        self.add(Path(path) for path in paths)

    def add_sample(self) -> None:
        """A short document of Pagekeep's own, to try everything with."""
        self.add([SAMPLE])

    def add(self, paths: Iterable[Path], password: str | None = None) -> None:
        """Imports files; a folder stands for the PDFs in it. They are attached to the conversation shown now."""
        attach = self._attach_to

        def look(chosen: tuple[Path, ...] = tuple(paths)) -> tuple[list[Path], list[Path]]:
            return _files(chosen), [path for path in chosen if path.is_dir() and not _files([path])]

        def begin(looked: tuple[list[Path], list[Path]]) -> None:
            self._import(looked[0], attach, password)
            self._tell_empty(looked[1])

        self._services.tasks.write(look, begin)

    def _import(self, files: Sequence[Path], attach: ConversationId | None, password: str | None = None) -> None:
        workspace = self._services.workspace
        self._wanted_by.update(dict.fromkeys(files, attach))

        def start() -> None:
            for path in files:
                workspace.documents.add(path, password=password, attach_to=attach)

        self._services.tasks.write(start)

    def cancel(self, job: events.JobId) -> None:
        self._services.tasks.read(lambda: self._services.workspace.documents.cancel(job))

    def recognise(self, document: int, pages: Sequence[int] | None = None) -> None:
        """Reads scanned pages, by default all of them; progress stands at the document."""
        workspace = self._services.workspace
        self._services.tasks.write(lambda: workspace.documents.recognise(document, pages))

    def resume(self, document: Document) -> None:
        """Only the import goes on: whichever conversation is shown, it has not asked for it."""
        self._import([document.path], None)

    # --- events -----------------------------------------------------------------------------------
    def queued(self, event: events.ImportQueued) -> None:
        self._rows.begin_import(event.job, event.path)
        self.moved.emit()

    def progress(self, event: events.ImportProgress) -> None:
        if event.progress.phase == "done":
            self._rows.end_import(event.job)
            self.stale.emit()
            return
        self._rows.begin_import(event.job, event.progress.path)
        self._rows.show_progress(event.job, event.progress)
        self.moved.emit()

    def done(self, event: events.ImportDone) -> None:
        self._rows.end_import(event.job)
        self._rows.put(event.document)
        if event.known:
            self._services.toasts.say(f"“{event.document.name}” was in the library already; nothing was read again.")
        elif event.document.note:
            self._services.toasts.say(
                f"“{event.document.name}”: {event.document.note}",
                "Report",
                lambda: self.report_wanted.emit(event.document),
            )
        elif event.document.unreadable_pages:
            unread = len(event.document.unreadable_pages)
            self._services.toasts.say(
                f"{unread:,} of {event.document.pages:,} pages of “{event.document.name}” have no readable text.",
                "Report",
                lambda: self.report_wanted.emit(event.document),
            )
        self.moved.emit()
        self.taken.emit()

    def cancelled(self, event: events.ImportCancelled) -> None:
        self._rows.end_import(event.job)
        self._services.toasts.say(
            f"Import of “{event.path.name}” stopped; what was read is kept.",
            "Resume",
            lambda: self._import([event.path], self._wanted_by.get(event.path)),
        )
        self.stale.emit()

    def failed(self, event: events.ImportFailed) -> None:
        self._rows.end_import(event.job)
        self.moved.emit()
        if needs_password(event.error):
            self._offer_password(event)
        else:
            self._errors.add(event.error)

    def indexing_ended(self, event: events.IndexingEnded) -> None:
        self._rows.end_import(event.job)
        self.moved.emit()
        if event.stopped:
            workspace = self._services.workspace
            self._services.toasts.say(
                "Indexing stopped; what was made is kept, and words are searched.",
                "Go on",
                lambda: self._services.tasks.write(workspace.documents.make_vectors),
            )

    def _offer_password(self, event: events.ImportFailed) -> None:
        """A card, no dialog: the reader may be writing a question."""
        told = UserError(event.error.what, "Its password is used once, for reading it, and is not stored.")

        card = ErrorCard(self._services.theme, told, "warn")

        def unlock(password: str) -> None:
            card.dismissed.emit()
            self._import([event.path], self._wanted_by.get(event.path), password)

        card.add_button("Enter password…", lambda: ask_password(self._panel, told, unlock))
        self._errors.put(card)

    def _tell_empty(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            self._errors.add(
                UserError(
                    f"There are no PDFs in “{folder.name}”.",
                    "Folders inside it are not searched.",
                    "Drop the PDFs themselves, or the folder that holds them.",
                )
            )


def needs_password(error: UserError) -> bool:
    return getattr(error, "kind", "") == "encrypted" or "password" in f"{error.why} {error.next}".lower()


def _files(paths: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        inside = (file for file in path.iterdir() if file.suffix.lower() == ".pdf") if path.is_dir() else [path]
        files.extend(sorted(inside))
    return files
