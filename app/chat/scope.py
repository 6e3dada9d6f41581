"""Where the next questions look: a chip in the header, with a menu of chapters, pages and collections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from app.core.lookups import Scope
from app.widgets.elided import ElidedLabel
from app.widgets.theme import Theme

if TYPE_CHECKING:
    from rag.scope import Chapter

MOST_CHAPTERS = 40
Contents = Sequence[tuple[int, str, Sequence["Chapter"]]]  # document, name, chapters


class ScopeChip(QWidget):
    """Signals: pressed (the menu is wanted), removed (look everywhere again)."""

    pressed = Signal()
    removed = Signal()

    def __init__(self, theme: Theme, scope: Scope) -> None:
        super().__init__()
        self.setObjectName("chip")
        self.setProperty("kind", "scope")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setMaximumWidth(260)
        self.setFixedHeight(24)
        change = QToolButton(icon=theme.icon("search", "accent"), iconSize=QSize(14, 14))
        change.setToolTip("Questions look only here. Choose another part")
        change.setAccessibleName(f"Questions look only into {scope.label}. Change")
        change.clicked.connect(self.pressed)
        text = ElidedLabel(f"Only {scope.label}", Qt.TextElideMode.ElideRight)
        text.setToolTip(scope.label)
        remove = QToolButton(icon=theme.icon("close"), iconSize=QSize(12, 12), toolTip="Look everywhere again")
        remove.setAccessibleName("Look everywhere again")
        remove.clicked.connect(self.removed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(7, 2, 5, 2)
        layout.setSpacing(4)
        for part in (change, text, remove):
            layout.addWidget(part)


class ScopeMenu(QMenu):
    """Signals: chosen (argument: Scope or None), pages_wanted (argument: document id)."""

    chosen = Signal(object)
    pages_wanted = Signal(int)

    def __init__(self, contents: Contents, collections: Sequence[str], scope: Scope | None, parent: QWidget) -> None:
        super().__init__(parent)
        if scope is not None:
            self.addAction("Everywhere", lambda: self.chosen.emit(None))
            self.addSeparator()
        for document, name, chapters in contents:
            menu = self if len(contents) == 1 else self.addMenu(name)
            if len(contents) > 1:
                whole = Scope(name, document)
                menu.addAction("All of it", lambda whole=whole: self.chosen.emit(whole))
            menu.addAction("Pages…", lambda document=document: self.pages_wanted.emit(document))
            self._add_chapters(menu, document, chapters)
        if collections:
            self.addSeparator()
            menu = self.addMenu("Collection")
            for name in collections:
                whole = Scope(name, collection=name)
                menu.addAction(name, lambda whole=whole: self.chosen.emit(whole))

    def _add_chapters(self, menu: QMenu, document: int, chapters: Sequence[Chapter]) -> None:
        top = [chapter for chapter in chapters if chapter.level == 0]
        if top:
            menu.addSeparator()
        for chapter in top[:MOST_CHAPTERS]:
            scope = Scope(chapter.title, document, chapter.first, chapter.last)
            shown = chapter.title if len(chapter.title) < 70 else f"{chapter.title[:68]}…"
            menu.addAction(shown.replace("&", "&&"), lambda scope=scope: self.chosen.emit(scope))
