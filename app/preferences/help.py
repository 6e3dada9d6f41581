"""The list of shortcuts and the about box."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QGridLayout, QLabel, QVBoxLayout, QWidget

from app.services import Services
from app.widgets.cards import label
from app.widgets.fitting import FittingScroll

SHORTCUTS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Conversations",
        (
            ("Ctrl+N", "New conversation"),
            ("Ctrl+K", "Search titles and messages"),
            ("Ctrl+Tab", "Next conversation"),
            ("Ctrl+Shift+Tab", "Previous conversation"),
            ("F2", "Rename (in the list)"),
            ("Del", "Delete, with undo (in the list)"),
        ),
    ),
    (
        "Chat",
        (
            ("Enter", "Send"),
            ("Shift+Enter", "New line"),
            ("Esc", "Stop the answer"),
            ("Ctrl+R", "Answer again"),
            ("Up", "Edit the last question (in the empty editor)"),
            ("Menu or Shift+F10", "What can be done with a message (its … button)"),
            ("Ctrl+L", "Write a question"),
            ("Ctrl+End", "Jump to the newest message"),
        ),
    ),
    (
        "Documents",
        (
            ("Ctrl+O", "Add PDFs"),
            ("Ctrl+F", "Search in the document"),
            ("F3 / Shift+F3", "Next / previous place found"),
            ("Alt+Left / Alt+Right", "Back / forward"),
            ("Ctrl++ / Ctrl+- / Ctrl+0", "Larger / smaller / fit the width"),
        ),
    ),
    (
        "Window",
        (
            ("Alt+1 / Alt+2 / Alt+3 / Alt+4", "Reader / Search / Cache / Timing"),
            ("Ctrl+M", "Models"),
            ("Ctrl+,", "Preferences"),
            ("F1 or Ctrl+/", "This list"),
            ("Ctrl+Q", "Quit"),
        ),
    ),
)


SCROLL_BAR = 12


class ShortcutsDialog(QDialog):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keyboard shortcuts")
        grid = QGridLayout()
        grid.setContentsMargins(9, 9, 9 + SCROLL_BAR, 9)
        grid.setHorizontalSpacing(24)
        grid.setVerticalSpacing(5)
        row = 0
        for title, entries in SHORTCUTS:
            heading = label(title, "section", wrap=False)
            heading.setContentsMargins(0, 8 if row else 0, 0, 0)
            grid.addWidget(heading, row, 0, 1, 2)
            for number, (keys, what) in enumerate(entries, start=row + 1):
                grid.addWidget(label(keys, "title", wrap=False), number, 0)
                grid.addWidget(label(what, wrap=False), number, 1)
            row += len(entries) + 1
        _finish(self, grid, scrolls=True)


class AboutDialog(QDialog):
    def __init__(self, services: Services, folders: tuple[tuple[str, str], ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About Pagekeep")
        picture = QLabel(pixmap=services.theme.pixmap("pagekeep", "text", 64))
        grid = QGridLayout()
        grid.setHorizontalSpacing(20)
        grid.setVerticalSpacing(6)
        grid.addWidget(picture, 0, 0, 2, 1, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(label(f"Pagekeep {_version()}", "title", wrap=False), 0, 1)
        grid.addWidget(label("Chat with long PDFs on your own machine; nothing is read twice.", wrap=False), 1, 1)
        for row, (name, folder) in enumerate(folders, start=2):
            grid.addWidget(label(name, "muted", wrap=False), row, 0)
            shown = label(folder, wrap=False)
            shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            grid.addWidget(shown, row, 1)
        grid.addWidget(label("MIT licence. Nothing you read or ask leaves this machine.", "muted"), row + 1, 1)
        _finish(self, grid)


def _finish(dialog: QDialog, content: QGridLayout, scrolls: bool = False) -> None:
    """`scrolls`: the content may be higher than the window."""
    close = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    close.rejected.connect(dialog.reject)
    layout = QVBoxLayout(dialog)
    layout.setContentsMargins(22, 18, 22, 14)
    layout.setSpacing(14)
    if scrolls:
        page = QWidget()
        page.setLayout(content)
        scroll = FittingScroll(page, 200)
        scroll.setMinimumWidth(page.sizeHint().width() + SCROLL_BAR)
        scroll.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # nothing in it takes the focus
        layout.addWidget(scroll)
    else:
        layout.addLayout(content)
    layout.addWidget(close)


def _version() -> str:
    try:
        return version("pagekeep")
    except PackageNotFoundError:
        return "(not installed)"
