"""Choosing where questions look: the menu, the pages that are typed, and what is selected in the reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QInputDialog, QWidget

from app.chat.scope import Contents, ScopeMenu
from app.core.lookups import Scope
from app.services import Services

if TYPE_CHECKING:
    from app.window import Window


class ScopeChooser(QObject):
    """Library reads happen off the main thread; the menu opens when they are done."""

    def __init__(self, services: Services, window: Window) -> None:
        super().__init__(window)
        self._services = services
        self._window = window
        self.menu: ScopeMenu | None = None

    def show_menu(self, source: QWidget) -> None:
        conversation = self._window.controller.conversation
        if conversation is None:
            return
        names, workspace = self._window.library.rows.names(), self._services.workspace
        documents = [id for id in conversation.document_ids if id in names]

        def read() -> tuple[Contents, list[str]]:
            contents = [(id, names[id], workspace.scopes.chapters(id)) for id in documents]
            return contents, [one.name for one in workspace.library.collections()]

        self._services.tasks.read(read, lambda found: self._open(source, found, conversation.scope))

    def _open(self, source: QWidget, found: tuple[Contents, list[str]], scope: Scope | None) -> None:
        self.menu = ScopeMenu(*found, scope, self._window)
        self.menu.chosen.connect(self._window.controller.changing.set_scope)
        self.menu.pages_wanted.connect(self._ask_pages)
        self.menu.aboutToHide.connect(self.menu.deleteLater)
        self.menu.popup(source.mapToGlobal(source.rect().bottomLeft()))

    def _ask_pages(self, document: int) -> None:
        dialog = QInputDialog(self._window)
        dialog.setWindowTitle("Pages")
        dialog.setLabelText("Printed pages to look into, as 10-20 or iv:")
        dialog.textValueSelected.connect(lambda text: self._set_pages(document, text))
        dialog.open()

    def _set_pages(self, document: int, text: str) -> None:
        workspace, window = self._services.workspace, self._window
        if text.strip():
            self._services.tasks.read(
                lambda: workspace.scopes.by_pages(document, text.strip()),
                window.controller.changing.set_scope,
                window.chat.show_failure,
            )

    def ask_about_selection(self, scope: Scope) -> None:
        """What is selected in the reader; its document joins the conversation when it has not."""
        controller = self._window.controller
        shown = controller.conversation
        if shown is None or scope.document_id is None:
            return
        if scope.document_id not in shown.document_ids:
            controller.changing.attach(scope.document_id)
        controller.changing.set_scope(scope)
        self._window.chat.composer.editor.setFocus()
