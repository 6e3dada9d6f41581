"""The left column's lower part: documents, and imports with their progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.core.import_words import import_words
from app.library.collections import CollectionChooser
from app.library.errors import ErrorList
from app.library.importing import Importing
from app.library.model import Import, LibraryModel, ReadWhole, kept_bytes
from app.services import Services
from app.widgets.cards import EmptyState, label
from app.widgets.rows import RowList
from app.widgets.search_field import SearchField
from engine.messages import DocumentRead, ModelLoaded

if TYPE_CHECKING:
    from rag import Document
    from rag.collections import Collection

FEW = 12  # documents that are found without searching for their names


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
        self._model: ModelLoaded | None = None
        self._leaving: set[int] = set()  # removed here, but not yet in the store
        self.rows = LibraryModel()
        self.list = RowList(services.theme, "Library")
        self.list.setModel(self.rows)
        self.search = SearchField("Find a document", "Find a document by its name")
        self._marked: int | None = None  # the document whose row is current, while rows are laid out anew
        self._add = QToolButton(toolTip="Add PDFs (Ctrl+O)", iconSize=QSize(18, 18))
        self._add.setAccessibleName("Add PDFs")
        self.collections = CollectionChooser(services)
        self._errors = ErrorList(services.theme)
        self.importing = Importing(services, self, self.rows, self._errors)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._draw()

    def reload(self) -> None:
        workspace = self._services.workspace
        self._services.tasks.read(lambda: workspace.library.documents(include_trashed=True), self._show_documents)
        self.collections.refresh()

    def look_again(self) -> None:
        """Shows what another process has changed; where nothing is new nothing moves."""
        workspace = self._services.workspace

        def read() -> tuple[list[Document], frozenset[int], tuple[Collection, ...]]:
            library = workspace.library
            begun = [document for document in library.documents() if document.state == "importing"]
            running = frozenset(int(one.id) for one in begun if library.is_being_read(one))
            documents = library.documents(include_trashed=True)  # then: what ended meanwhile is not called stopped
            return documents, running, tuple(library.collections())

        self._services.tasks.read(read, self._compare, lambda _: None)

    @property
    def awaits_another(self) -> bool:
        """Another process takes a document in; should it be killed, nothing is written."""
        return self.rows.running

    def model_loaded(self, event: ModelLoaded) -> None:
        """Another model has read nothing yet, until it is told."""
        self._model = event
        self.rows.forget_read()

    def document_read(self, event: DocumentRead) -> None:
        """Of a document alone; its seconds are told where nearly all of it was read just now."""
        if event.document.isdecimal() and self._model is not None:
            seconds = event.seconds if 10 * event.computed > 9 * event.tokens else 0.0
            self.rows.show_read(int(event.document), ReadWhole(kept_bytes(event.tokens, self._model), seconds))

    # --- actions ----------------------------------------------------------------------------------
    def remove(self) -> None:
        document, running = self._selected()
        if running is not None:
            self.importing.cancel(running.job)
        if document is None or running is not None:
            return
        workspace = self._services.workspace
        self.rows.remove(document.id)
        self._update()
        self._leaving.add(document.id)
        self._services.tasks.write(
            lambda: workspace.documents.trash(document.id),
            lambda _: self._left(document.id),
            lambda error: self._left(document.id, error),
        )
        self._services.toasts.offer_undo(f"“{document.name}” is in the trash.", lambda: self.bring_back(document.id))
        self.removed.emit(document.id)
        self.changed.emit()

    def _left(self, document: int, error: Exception | None = None) -> None:
        self._leaving.discard(document)
        self.look_again()
        if error is not None:
            self._services.tasks.failed.emit(error)

    def bring_back(self, document: int) -> None:
        workspace = self._services.workspace
        self._services.tasks.write(lambda: workspace.documents.restore(document), lambda _: self.reload())

    def _open(self) -> None:
        document, _ = self._selected()
        if document is not None:
            self.open_wanted.emit(document.id)

    def _menu(self, place: QPoint) -> None:
        document, running = self._selected()
        menu = QMenu(self)
        if running is not None:
            menu.addAction("Stop importing", QKeySequence("Del"), lambda: self.importing.cancel(running.job))
        if document is not None:
            menu.addAction("Open", QKeySequence("Return"), lambda: self.open_wanted.emit(document.id))
            menu.addAction("Ask about this", lambda: self.ask_wanted.emit(document))
            menu.addAction("What was read…", lambda: self.report_wanted.emit(document))
            if document.unreadable_pages:
                menu.addAction("Read the scans", lambda: self.importing.recognise(document.id))
            self.collections.add_document_menu(menu, document.id)
            if document.state == "importing":
                menu.addAction("Resume importing", lambda: self.importing.resume(document))
            if running is None:
                menu.addSeparator()
                menu.addAction("Remove", QKeySequence("Del"), self.remove)
        if document is None and running is None:
            menu.addAction("Add PDFs…", QKeySequence("Ctrl+O"), self.importing.choose_files)
        menu.exec(self.list.viewport().mapToGlobal(place))

    def _selected(self) -> tuple[Document | None, Import | None]:
        row = self.list.currentIndex().row()
        return self.rows.document(row), self.rows.import_at(row)

    # --- showing ----------------------------------------------------------------------------------
    def _show_documents(self, documents: Sequence[Document]) -> None:
        self.rows.show_documents(documents)
        self._update()
        self.changed.emit()

    def _compare(self, found: tuple[Sequence[Document], frozenset[int], tuple[Collection, ...]]) -> None:
        documents, running, collections = found
        if self._leaving:
            return  # read before what the reader removed was stored; that is a change too
        ended = self.rows.show_running(running)
        for document in documents:
            if document.state == "importing" and int(document.id) in ended:
                self.importing.resume(document)  # its process was killed, or stopped
        if self.rows.differs(documents):
            for gone in self.rows.names().keys() - {one.id for one in documents if one.state != "trashed"}:
                self.removed.emit(gone)
            self._show_documents(documents)
            workspace = self._services.workspace
            self._services.tasks.read(lambda: workspace.ahead.wake(), None, lambda _: None)  # there is other reading
        self.collections.put(collections)

    def find(self) -> None:
        """The reader looks for a document by its name."""
        self.search.setFocus()
        self.search.selectAll()

    def _find(self, words: str) -> None:
        self.rows.show_named(words)
        if words and self.rows.rowCount():
            self.list.setCurrentIndex(self.rows.index(0))
        self._update()

    def _leave_search(self) -> None:
        self.search.clear()
        self.list.setFocus()

    def _keep_mark(self) -> None:
        document, _ = self._selected()
        self._marked = None if document is None else int(document.id)

    def _mark_again(self) -> None:
        place = None if self._marked is None else self.rows.place(self._marked)
        if place is not None:
            self.list.setCurrentIndex(self.rows.index(place))

    def _show_only(self, documents: frozenset[int] | None) -> None:
        self.rows.show_only(documents)
        self._update()

    def _update(self) -> None:
        self.search.setVisible(bool(self.search.text()) or len(self.rows.documents()) > FEW)
        narrowed = self.collections.shown or self.search.text()
        self._stack.setCurrentIndex(0 if self.rows.rowCount() or narrowed else 1)
        running = self.rows.imports()
        if running:
            more = f" (+{len(running) - 1} more)" if len(running) > 1 else ""
            words = f"{self.rows.name(running[0])}: {import_words(running[0].progress)}{more}"
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
        empty = EmptyState(self._services.theme, "library", "No documents yet", "Drop PDFs anywhere on the window.")
        empty.add_button("Add PDFs…", self.importing.choose_files)
        self._stack.addWidget(self.list)
        self._stack.addWidget(empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 4)
        layout.setSpacing(6)
        layout.addLayout(head)
        searching = QHBoxLayout()
        searching.setContentsMargins(10, 0, 10, 0)
        searching.addWidget(self.search)
        layout.addLayout(searching)
        layout.addWidget(self._errors)
        layout.addWidget(self._stack, 1)
        self._stack.setCurrentIndex(0)

    def _connect(self) -> None:
        self.collections.chosen.connect(self._show_only)
        self.importing.moved.connect(self._update)
        self.importing.taken.connect(self.collections.refresh)
        self.importing.taken.connect(self.changed)
        self.importing.stale.connect(self.reload)
        self.importing.report_wanted.connect(self.report_wanted)
        self.list.activated.connect(lambda _: self._open())
        self.search.textChanged.connect(self._find)
        self.search.left.connect(self._leave_search)
        self.search.returnPressed.connect(self._open)
        self.search.down.connect(self.list.setFocus)
        self.rows.modelAboutToBeReset.connect(self._keep_mark)
        self.rows.modelReset.connect(self._mark_again)
        self.list.customContextMenuRequested.connect(self._menu)
        self._add.clicked.connect(self.importing.choose_files)
        self._services.theme.changed.connect(self._draw)
        shortcut = QShortcut(QKeySequence("Del"), self.list, self.remove)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)

    def _draw(self) -> None:
        self._add.setIcon(self._services.theme.icon("add"))
