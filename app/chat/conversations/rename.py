"""The one question a rename asks."""

from __future__ import annotations

from PySide6.QtWidgets import QInputDialog, QLineEdit, QWidget


def ask_title(parent: QWidget, title: str) -> str | None:
    """The new title, or None when the reader thought better of it."""
    text, accepted = QInputDialog.getText(parent, "Rename conversation", "Title", QLineEdit.EchoMode.Normal, title)
    return text.strip() or None if accepted else None
