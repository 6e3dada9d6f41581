"""The left column's lower part: documents, and imports with their progress.

Over 300 lines: the wiring of one panel, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.core import events
from app.core.errors import UserError
from app.library.collections import CollectionChooser
from app.library.errors import ErrorList
from app.library.model import Import, LibraryModel, ReadWhole, progress_words
from app.services import Services
from app.widgets.cards import EmptyState, label
from app.widgets.rows import RowList
from app.widgets.theme import ASSETS
from engine.messages import ConversationId, DocumentRead, ModelLoaded

if TYPE_CHECKING:
    from rag import Document


SAMPLE = ASSETS / "sample" / "pagekeep-sample.pdf"


class LibraryPanel(QWidget):
    """Signals:
    open_wanted: a document should be shown in the reader (argument: document id).
    ask_wanted: a document should be attached to the conversation (argument: Document).
    report_wanted: its intake report should be shown (argument: Document).
    changed: names or the number of documents changed.
    removed: a document went to the trash (argument: document id).
    activity: what runs, in words, and its job; ("", None) when nothing runs.
    """

    open_wanted = Signal(int)
    ask_wanted = Signal(object)
    report_wanted = Signal(object)
    changed = Signal()
    removed = Signal(int)
    activity = Signal(str, object)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._attach_to: ConversationId | None = None
        self._kv_bytes = 0
        self.rows = LibraryModel()
        self.list = RowList(services.theme, "Library")
        self.list.setModel(self.rows)
        self._add = QToolButton(toolTip="Add PDFs (Ctrl+O)", iconSize=QSize(18, 18))
        self._add.setAccessibleName("Add PDFs")
        self.collections = CollectionChooser(services)
        self._errors = ErrorList(services.theme)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._draw()

    def reload(self) -> None:
        workspace = self._services.workspace
        self._services.tasks.read(lambda: workspace.library.documents(), self._show_documents)
        self.collections.refresh()

    def set_conversation(self, conversation: ConversationId | None) -> None:
        """New imports are attached to the conversation the reader is in."""
        self._attach_to = conversation

    # --- imports ----------------------------------------------------------------------------------
    def choose_files(self) -> None:
        paths, _ = QFileDialog.getOpenFileNames(self, "Add PDFs", "", "PDF documents (*.pdf);;All files (*)")
        self.add(Path(path) for path in paths)

    def add_sample(self) -> None:
        """A short document of Pagekeep's own, to try everything with."""
        self.add([SAMPLE])

    def add(self, paths: Iterable[Path], password: str | None = None) -> None:
        """Imports files; a folder stands for the PDFs in it."""
        workspace, attach = self._services.workspace, self._attach_to

        def start(chosen: tuple[Path, ...] = tuple(paths)) -> list[Path]:
            for path in _files(chosen):
                workspace.import_document(path, password=password, attach_to=attach)
            return [path for path in chosen if path.is_dir() and not _files([path])]

        self._services.tasks.write(start, self._tell_empty)

    def cancel(self, job: events.JobId) -> None:
        self._services.tasks.read(lambda: self._services.workspace.cancel_import(job))

    def import_queued(self, event: events.ImportQueued) -> None:
        self.rows.begin_import(event.job, event.path)
        self._update()

    def import_progress(self, event: events.ImportProgress) -> None:
        if event.progress.phase == "done":
            self.rows.end_import(event.job)
            self.reload()
            return
        self.rows.begin_import(event.job, event.progress.path)
        self.rows.show_progress(event.job, event.progress)
        self._update()

    def import_done(self, event: events.ImportDone) -> None:
        self.rows.end_import(event.job)
        self.rows.put(event.document)
        if event.known:
            self._services.toasts.say(
                f"“{event.document.name}” was in the library already; nothing was read again."
            )
        elif event.document.unreadable_pages:
            unread = len(event.document.unreadable_pages)
            self._services.toasts.say(
                f"{unread:,} of {event.document.pages:,} pages of “{event.document.name}” have no readable text.",
                "Report",
                lambda: self.report_wanted.emit(event.document),
            )
        self._update()
        self.collections.refresh()
        self.changed.emit()

    def import_cancelled(self, event: events.ImportCancelled) -> None:
        self.rows.end_import(event.job)
        self._services.toasts.say(
            f"Import of “{event.path.name}” stopped; what was read is kept.",
            "Resume",
            lambda: self.add([event.path]),
        )
        self.reload()

    def import_failed(self, event: events.ImportFailed) -> None:
        self.rows.end_import(event.job)
        self._update()
        if needs_password(event.error):
            self._ask_password(event.path)
        else:
            self._errors.add(event.error)

    def model_loaded(self, event: ModelLoaded) -> None:
        """Another model has read nothing yet, until it is told."""
        self._kv_bytes = event.kv_bytes_per_token
        self.rows.forget_read()

    def document_read(self, event: DocumentRead) -> None:
        """Of a document alone; its seconds are told where nearly all of it was read just now."""
        if event.document.isdecimal():
            seconds = event.seconds if 10 * event.computed > 9 * event.tokens else 0.0
            self.rows.show_read(int(event.document), ReadWhole(event.tokens * self._kv_bytes, seconds))

    def _ask_password(self, path: Path) -> None:
        from app.library.password import ask_password

        password = ask_password(self, path.name)
        if password:
            self.add([path], password)

    def _tell_empty(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            self._errors.add(
                UserError(
                    f"There are no PDFs in “{folder.name}”.",
                    "Folders inside it are not searched.",
                    "Drop the PDFs themselves, or the folder that holds them.",
                )
            )

    def recognise(self, document: int, pages: Sequence[int] | None = None) -> None:
        """Reads scanned pages, by default all of them; progress stands at the document."""
        workspace = self._services.workspace
        self._services.tasks.write(lambda: workspace.recognise(document, pages))

    # --- actions ----------------------------------------------------------------------------------
    def remove(self) -> None:
        document, running = self._selected()
        if running is not None:
            self.cancel(running.job)
        if document is None or running is not None:
            return
        workspace = self._services.workspace
        self.rows.remove(document.id)
        self._update()
        self._services.tasks.write(lambda: workspace.trash_document(document.id))
        self._services.toasts.offer_undo(
            f"“{document.name}” is in the trash.", lambda: self.bring_back(document.id)
        )
        self.removed.emit(document.id)
        self.changed.emit()

    def bring_back(self, document: int) -> None:
        workspace = self._services.workspace
        self._services.tasks.write(lambda: workspace.restore_document(document), lambda _: self.reload())

    def _resume(self, document: Document) -> None:
        self.add([document.path])

    def _open(self) -> None:
        document, _ = self._selected()
        if document is not None:
            self.open_wanted.emit(document.id)

    def _menu(self, place: QPoint) -> None:
        document, running = self._selected()
        menu = QMenu(self)
        if running is not None:
            menu.addAction("Stop importing", QKeySequence("Del"), lambda: self.cancel(running.job))
        if document is not None:
            menu.addAction("Open", QKeySequence("Return"), lambda: self.open_wanted.emit(document.id))
            menu.addAction("Ask about this", lambda: self.ask_wanted.emit(document))
            menu.addAction("What was read…", lambda: self.report_wanted.emit(document))
            if document.unreadable_pages:
                menu.addAction("Read the scans", lambda: self.recognise(document.id))
            self.collections.add_document_menu(menu, document.id)
            if document.state == "importing":
                menu.addAction("Resume importing", lambda: self._resume(document))
            if running is None:
                menu.addSeparator()
                menu.addAction("Remove", QKeySequence("Del"), self.remove)
        if document is None and running is None:
            menu.addAction("Add PDFs…", QKeySequence("Ctrl+O"), self.choose_files)
        menu.exec(self.list.viewport().mapToGlobal(place))

    def _selected(self) -> tuple[Document | None, Import | None]:
        row = self.list.currentIndex().row()
        return self.rows.document(row), self.rows.import_at(row)

    # --- showing ----------------------------------------------------------------------------------
    def _show_documents(self, documents: Sequence[Document]) -> None:
        self.rows.show_documents(documents)
        self._update()
        self.changed.emit()

    def _show_only(self, documents: frozenset[int] | None) -> None:
        self.rows.show_only(documents)
        self._update()

    def _update(self) -> None:
        self._stack.setCurrentIndex(0 if self.rows.rowCount() or self.collections.shown else 1)
        running = self.rows.imports()
        if running:
            more = f" (+{len(running) - 1} more)" if len(running) > 1 else ""
            words = f"{self.rows.name(running[0])}: {progress_words(running[0].progress)}{more}"
            self.activity.emit(words, running[0].job)
        else:
            self.activity.emit("", None)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(14, 0, 8, 0)
        head.addWidget(label("Library", "section", wrap=False))
        head.addWidget(self.collections)
        head.addStretch(1)
        head.addWidget(self._add)
        empty = EmptyState(
            self._services.theme, "library", "No documents yet", "Drop PDFs anywhere on the window."
        )
        empty.add_button("Add PDFs…", self.choose_files)
        self._stack.addWidget(self.list)
        self._stack.addWidget(empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 4)
        layout.setSpacing(6)
        layout.addLayout(head)
        layout.addWidget(self._errors)
        layout.addWidget(self._stack, 1)
        self._stack.setCurrentIndex(0)

    def _connect(self) -> None:
        self.collections.chosen.connect(self._show_only)
        self.list.activated.connect(lambda _: self._open())
        self.list.customContextMenuRequested.connect(self._menu)
        self._add.clicked.connect(self.choose_files)
        self._services.theme.changed.connect(self._draw)
        shortcut = QShortcut(QKeySequence("Del"), self.list, self.remove)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)

    def _draw(self) -> None:
        self._add.setIcon(self._services.theme.icon("add"))


def needs_password(error: UserError) -> bool:
    return getattr(error, "kind", "") == "encrypted" or "password" in f"{error.why} {error.next}".lower()


def _files(paths: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        inside = (file for file in path.iterdir() if file.suffix.lower() == ".pdf") if path.is_dir() else [path]
        files.extend(sorted(inside))
    return files
