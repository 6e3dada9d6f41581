"""Dialogs of the window, made when they are first wanted: their modules cost nothing at start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, Qt
from PySide6.QtWidgets import QDialog

from app.core.errors import as_user_error
from app.core.records import Conversation
from app.services import Services

if TYPE_CHECKING:
    from app.window import Window
    from rag import Document, IntakeReport

log = logging.getLogger(__name__)
MARGIN = QSize(80, 80)  # of the window, seen around a dialog


class Dialogs(QObject):
    """None of them blocks the window: they stay beside it until they are closed."""

    def __init__(self, services: Services, window: Window) -> None:
        super().__init__(window)
        self._services = services
        self._window = window
        self.shown: QDialog | None = None

    def models(self) -> None:
        from app.models.dialog import ModelsDialog

        status = self._window.status
        self._show(ModelsDialog(self._services, status.loaded, status.loading, self._window))

    def preferences(self) -> None:
        from app.preferences.dialog import PreferencesDialog

        dialog = PreferencesDialog(self._services, self._services.theme.choice, self._window)
        dialog.theme_chosen.connect(self._services.theme.choose)
        self._show(dialog)

    def shortcuts(self) -> None:
        from app.preferences.help import ShortcutsDialog

        self._show(ShortcutsDialog(self._window))

    def about(self) -> None:
        from app.preferences.help import AboutDialog

        paths = self._services.workspace.paths
        folders = (
            ("Conversations, library", str(paths.data)),
            ("Saved model state", str(paths.kv)),
            ("Log", str(paths.logs)),
        )
        self._show(AboutDialog(self._services, folders, self._window))

    def trash(self) -> None:
        from app.frame.trash import TrashDialog

        dialog = TrashDialog(self._services, self._window)
        dialog.restored.connect(self._restored)
        self._show(dialog)

    def report(self, document: Document) -> None:
        library = self._services.workspace
        self._services.tasks.read(lambda: library.library.report(document.id), self._show_report)

    def show_failure(self, error: Exception) -> None:
        told = as_user_error(error)
        self._services.toasts.say(" ".join(part for part in (told.what, told.why, told.next) if part))

    def _show_report(self, report: IntakeReport) -> None:
        from app.library.report_dialog import IntakeDialog
        from app.reader.page_view import Place

        dialog = IntakeDialog(self._services.theme, report, self._window)
        dialog.open_page.connect(lambda page: self._window.reader.open(report.document.id, Place(page)))
        dialog.read_wanted.connect(lambda pages: self._window.library.importing.recognise(report.document.id, pages))
        self._show(dialog)

    def _restored(self, conversation: Conversation | None) -> None:
        if conversation is not None:
            self._window.conversations.put(conversation)
        else:
            self._window.library.reload()

    def _show(self, dialog: QDialog) -> None:
        if self.shown is not None:
            self.shown.close()
        self.shown = dialog
        dialog.finished.connect(lambda: self._forget(dialog))
        if not dialog.testAttribute(Qt.WidgetAttribute.WA_Resized):
            _fit(dialog)
        dialog.resize(dialog.size().boundedTo(self._window.size() - MARGIN))
        dialog.open()

    def _forget(self, dialog: QDialog) -> None:
        if self.shown is dialog:
            self.shown = None
        dialog.deleteLater()
        self._give_focus_back()

    def _give_focus_back(self) -> None:
        """To what had it; without a window manager nobody else does."""
        window = self._window
        if window.isVisible():
            window.activateWindow()
            (window.focusWidget() or window.chat.composer.editor).setFocus()


def _fit(dialog: QDialog) -> None:
    """As large as its content: Qt stops at two thirds of the screen's height."""
    dialog.adjustSize()
    width, layout = dialog.width(), dialog.layout()
    wanted = layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else dialog.sizeHint().height()
    dialog.resize(width, max(dialog.height(), wanted))
