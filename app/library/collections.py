"""Collections in the library: which one is shown, what belongs to it, and folders that are followed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMenu, QToolButton

from app.core.lookups import Scope
from app.services import Services
from app.widgets.format import count

if TYPE_CHECKING:
    from rag.collections import Collection
    from rag.types import DocumentId

ALL = "All documents"


class CollectionChooser(QToolButton):
    """Names the collection that is shown; pressed, it offers the others.

    Signals:
        chosen: argument: ids of the documents to show, None for all.
        ask_wanted: questions shall look into a collection (argument: Scope).
    """

    chosen = Signal(object)
    ask_wanted = Signal(object)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self.known: tuple[Collection, ...] = ()
        self.shown = ""
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
        self.setToolTip("Collections and followed folders")
        self.clicked.connect(self.open_menu)
        self._say()

    def refresh(self) -> None:
        """Reads the collections again; what is shown follows."""
        workspace = self._services.workspace
        self._services.tasks.read(lambda: tuple(workspace.library.collections()), self._take)

    def put(self, known: tuple[Collection, ...]) -> None:
        """As another process left them."""
        if known != self.known:
            self._take(known)

    def _take(self, known: tuple[Collection, ...]) -> None:
        self.known = known
        self.show_collection(self.shown)

    def show_collection(self, name: str) -> None:
        """ "" or an unknown one: all documents."""
        found = next((one for one in self.known if one.name == name), None)
        self.shown = found.name if found is not None else ""
        self._say()
        self.chosen.emit(None if found is None else frozenset(int(d) for d in found.documents))

    def open_menu(self) -> None:
        menu = self.menu_for(QMenu(self))
        menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def menu_for(self, menu: QMenu) -> QMenu:
        for name, text in [("", ALL), *((one.name, _words(one)) for one in self.known)]:
            action = menu.addAction(text, lambda name=name: self.show_collection(name))
            action.setCheckable(True)
            action.setChecked(name == self.shown)
        menu.addSeparator()
        if self.shown:
            scope = Scope(self.shown, collection=self.shown)
            menu.addAction(f"Ask about “{self.shown}”", lambda: self.ask_wanted.emit(scope))
            menu.addAction(f"Forget “{self.shown}” (documents stay)", self._drop)
            menu.addSeparator()
        menu.addAction("New collection…", self._ask_name)
        menu.addAction("Follow a folder…", self._choose_folder)
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    def add_document_menu(self, menu: QMenu, document: DocumentId) -> None:
        """A checked entry for each collection the document belongs to."""
        inside = menu.addMenu("Collections")
        for one in self.known:
            action = inside.addAction(one.name)
            action.setCheckable(True)
            action.setChecked(document in one.documents)
            action.toggled.connect(lambda on, name=one.name: self._put(name, document, on))
        if self.known:
            inside.addSeparator()
        inside.addAction("New collection…", lambda: self._ask_name([document]))

    def follow(self, folder: Path) -> None:
        workspace = self._services.workspace

        def done(made: Collection) -> None:
            self.shown = made.name
            self.refresh()
            self._services.toasts.say(f"PDFs in “{folder.name}” come into the library by themselves.")

        self._services.tasks.write(lambda: workspace.folders.follow(folder), done)

    def make(self, name: str, documents: Sequence[DocumentId] = ()) -> None:
        library = self._services.workspace

        def work() -> str:
            made = library.library.make_collection(name)
            library.library.put_in(made.name, documents)
            return made.name

        self._services.tasks.write(work, self._made)

    def _made(self, name: str) -> None:
        self.shown = name
        self.refresh()

    def _put(self, name: str, document: DocumentId, on: bool) -> None:
        workspace = self._services.workspace

        def work() -> None:
            (workspace.library.put_in if on else workspace.library.take_out)(name, [document])

        self._services.tasks.write(work, lambda _: self.refresh())

    def _drop(self) -> None:
        workspace, name = self._services.workspace, self.shown
        self._services.tasks.write(lambda: workspace.library.drop_collection(name), lambda _: self.refresh())

    def _ask_name(self, documents: Sequence[DocumentId] = ()) -> None:
        dialog = QInputDialog(self)
        dialog.setWindowTitle("New collection")
        dialog.setLabelText("Name of the collection:")
        dialog.textValueSelected.connect(lambda name: name.strip() and self.make(name, documents))
        dialog.open()

    def _choose_folder(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Follow a folder")
        if folder:
            self.follow(Path(folder))

    def _say(self) -> None:
        self.setText(f"{self.shown or ALL} ▾")
        self.setAccessibleName(f"Shown: {self.shown or ALL}. Choose a collection")


def _words(collection: Collection) -> str:
    followed = f", follows “{collection.folder.name}”" if collection.folder else ""
    return f"{collection.name.replace('&', '&&')}  ({count(len(collection.documents))}{followed})"
