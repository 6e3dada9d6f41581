"""Choosing a document of the library for the shown conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QMenu, QToolButton

from app.library.choose import DocumentChooser
from rag.sizes import plural

if TYPE_CHECKING:
    from app.window import Window

MOST_SHOWN = 40  # in a menu; all are in the dialog behind it


def show_attach_menu(window: Window, source: QToolButton) -> None:
    menu = attach_menu(window)
    menu.exec(source.mapToGlobal(source.rect().bottomLeft()))


def attach_menu(window: Window) -> QMenu:
    menu = QMenu(window)
    shown = window.controller.conversation
    attached = shown.document_ids if shown is not None else ()
    free = [document for document in window.library.rows.documents() if document.id not in attached]
    for document in free[:MOST_SHOWN]:
        name = document.name.replace("&", "&&")
        menu.addAction(name, lambda id=document.id: window.controller.changing.attach(id))
    if len(free) > MOST_SHOWN:
        attach = window.controller.changing.attach
        menu.addAction(f"All {plural(len(free), 'document')}…", lambda: DocumentChooser(free, attach, window).open())
    menu.addSeparator()
    menu.addAction("Add PDFs…", window.library.importing.choose_files)
    return menu
