"""The clipboard."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication


def copy_text(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
