"""Import errors above the library: the newest on top, scrolled where there are many, so that lists keep room."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app.core.errors import UserError
from app.widgets.cards import ErrorCard, button
from app.widgets.theme import Theme

HIGHEST = 160


class ErrorList(QScrollArea):
    """Hidden while there is none; as high as its cards, up to HIGHEST pixels."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(widgetResizable=True)
        self._theme = theme
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Import errors")
        self._all = button("Dismiss all", self.clear, "flat")
        page = QWidget()
        page.setObjectName("sidebar")
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(10, 0, 10, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self._all, 0, Qt.AlignmentFlag.AlignRight)
        self.setWidget(page)
        self.hide()

    def add(self, error: UserError) -> None:
        card = ErrorCard(self._theme, error)
        card.add_dismiss()
        card.dismissed.connect(lambda: self._remove(card))
        self._column.insertWidget(1, card)
        self._fit()
        self.verticalScrollBar().setValue(0)

    def cards(self) -> list[ErrorCard]:
        shown = (self._column.itemAt(place).widget() for place in range(1, self._column.count()))
        return [card for card in shown if isinstance(card, ErrorCard)]

    def clear(self) -> None:
        for card in self.cards():
            self._remove(card)

    def sizeHint(self) -> QSize:
        return QSize(180, max(0, min(HIGHEST, self._column.heightForWidth(self._inside()))))

    def minimumSizeHint(self) -> QSize:
        return QSize(60, min(90, self.sizeHint().height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def _inside(self) -> int:
        return max(120, self.width() - (10 if self._column.count() > 2 else 0))

    def _remove(self, card: ErrorCard) -> None:
        self._column.removeWidget(card)
        card.hide()
        card.deleteLater()
        self._fit()

    def _fit(self) -> None:
        many = len(self.cards())
        self.setVisible(many > 0)
        self._all.setVisible(many > 1)
        self.setFixedHeight(self.sizeHint().height())
