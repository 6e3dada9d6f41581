"""Asks for the password of a protected document; it is used once and never stored."""

from __future__ import annotations

from PySide6.QtWidgets import QInputDialog, QLineEdit, QWidget


def ask_password(parent: QWidget, name: str) -> str | None:
    text, accepted = QInputDialog.getText(
        parent,
        "Protected document",
        f"“{name}” is protected. Its password is used once, for reading it, and is not stored.",
        QLineEdit.EchoMode.Password,
    )
    return text or None if accepted else None
