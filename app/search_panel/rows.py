"""A found passage as a button: document, page, scores, whether the model saw it; a click opens the page."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.core.lookups import FoundPassage
from app.search_panel.words import USE_COLORS, page_words, score_words, use_words
from app.widgets.cards import label
from app.widgets.elided import ElidedLabel
from app.widgets.theme import Theme

NARROWEST = 200


class FoundRow(QPushButton):
    def __init__(self, theme: Theme, found: FoundPassage, number: int, tried: bool, cited_as: int | None) -> None:
        super().__init__()
        self.found = found
        self.setProperty("kind", "source")
        self.setAutoDefault(False)
        use = use_words(found, tried, cited_as)
        self.setAccessibleName(f"{number}: {found.document}, {page_words(found)}, {score_words(found)}, {use}")
        self.setToolTip(f"Open {found.document}, {page_words(found)}")
        self._theme = theme
        head = QHBoxLayout()
        head.setSpacing(8)
        title = ElidedLabel(f"{number}  {found.document}", Qt.TextElideMode.ElideMiddle)
        head.addWidget(title)
        head.addWidget(label(page_words(found), wrap=False))
        head.addStretch(1)
        self._text = label(found.text)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 7, 10, 8)
        column.setSpacing(3)
        column.addLayout(head)
        if use:
            column.addWidget(label(use, USE_COLORS[found.use]))
        column.addWidget(label(score_words(found), "muted"))
        column.addWidget(self._text)
        for part in self.findChildren(QWidget):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self.layout().totalHeightForWidth(width)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        """As narrow as its place; the text breaks."""
        width = max(NARROWEST, self.width())
        return QSize(NARROWEST, self.heightForWidth(width))
