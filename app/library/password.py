"""Asks for the password of a protected document; it is used once and never stored."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog, QLineEdit, QWidget

from app.core.errors import UserError


def ask_password(parent: QWidget, refused: UserError, given: Callable[[str], object]) -> QInputDialog:
    """Returns at once, with the dialog open; `given` is called with what was typed, if anything was."""
    dialog = QInputDialog(parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle("Protected document")
    dialog.setLabelText(f"{refused.what} {refused.why}")
    dialog.setTextEchoMode(QLineEdit.EchoMode.Password)
    dialog.textValueSelected.connect(lambda text: given(text) if text else None)
    dialog.open()
    return dialog
