"""The window's menu and its shortcuts; app/preferences/help.py lists them for the reader."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QMenu, QToolButton

if TYPE_CHECKING:
    from app.window import Window

Entry = tuple[str, str, Callable[[], object]]


def menu_button(window: Window) -> QToolButton:
    menu = QMenu(window)
    for name, keys, act in _menu_entries(window):
        menu.addAction(name, QKeySequence(keys), act)
    made = QToolButton(toolTip="Menu")
    made.setAccessibleName("Menu")
    made.setMenu(menu)
    made.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    theme = window.services.theme
    made.setIcon(theme.icon("more"))
    theme.changed.connect(lambda: made.setIcon(theme.icon("more")))
    return made


def add_shortcuts(window: Window) -> None:
    for keys, act in [*_chat_keys(window), *_reader_keys(window)]:
        QShortcut(QKeySequence(keys), window, act)


def _menu_entries(window: Window) -> list[Entry]:
    dialogs = window.dialogs
    return [
        ("New conversation", "Ctrl+N", window.new_conversation),
        ("Add PDFs…", "Ctrl+O", window.library.importing.choose_files),
        ("Models…", "Ctrl+M", dialogs.models),
        ("Preferences…", "Ctrl+,", dialogs.preferences),
        ("Trash…", "", dialogs.trash),
        ("Keyboard shortcuts", "F1", dialogs.shortcuts),
        ("About Pagekeep", "", dialogs.about),
        ("Quit", "Ctrl+Q", window.close),
    ]


def _chat_keys(window: Window) -> list[tuple[str, Callable[[], object]]]:
    return [
        ("Ctrl+/", window.dialogs.shortcuts),
        ("Ctrl+K", window.conversations.searching.begin),
        ("Ctrl+Tab", lambda: window.conversations.step(1)),
        ("Ctrl+Shift+Tab", lambda: window.conversations.step(-1)),
        ("Ctrl+PgDown", lambda: window.conversations.step(1)),
        ("Ctrl+PgUp", lambda: window.conversations.step(-1)),
        ("Ctrl+L", window.chat.composer.editor.setFocus),
        ("Esc", window.controller.stop),
        ("Ctrl+R", window.controller.regenerate),
        ("Ctrl+End", window.chat.transcript.jump_to_newest),
    ]


def _reader_keys(window: Window) -> list[tuple[str, Callable[[], object]]]:
    reader, tabs = window.reader, window.tabs
    return [
        ("Ctrl+F", window.search_in_document),
        ("Alt+Left", reader.go_back),
        ("Alt+Right", reader.go_forward),
        ("Ctrl++", lambda: reader.view.zoom_step(1)),
        ("Ctrl+=", lambda: reader.view.zoom_step(1)),
        ("Ctrl+-", lambda: reader.view.zoom_step(-1)),
        ("Ctrl+0", reader.view.fit_width),
        *((f"Alt+{tab + 1}", lambda tab=tab: tabs.setCurrentIndex(tab)) for tab in range(tabs.count())),
    ]
