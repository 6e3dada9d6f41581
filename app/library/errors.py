"""Import errors above the library: one is shown as it is, several are a line that unfolds: lists keep their room."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.core.errors import UserError
from app.widgets.cards import ErrorCard
from app.widgets.format import count, plural
from app.widgets.theme import Theme

HIGHEST = 160


class _Summary(QWidget):
    """`3 imports failed`, with a button that unfolds them and one that dismisses all."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("errorCard")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.fold = QToolButton(checkable=True, iconSize=QSize(12, 12))
        self.fold.setProperty("kind", "fold")
        self.fold.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.close_all = QToolButton(iconSize=QSize(12, 12), toolTip="Dismiss all")
        self.close_all.setAccessibleName("Dismiss all import errors")
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 2, 6, 2)
        row.addWidget(self.fold)
        row.addStretch(1)
        row.addWidget(self.close_all)
        theme.changed.connect(self._draw)
        self.fold.toggled.connect(self._draw)
        self._draw()

    def show_count(self, failed: int, locked: int) -> None:
        """`locked`: files that need a password."""
        more = f"{count(locked)} locked" if failed else f"{count(locked)} files are locked"
        words = [f"{plural(failed, 'import')} failed"] * bool(failed) + [more] * bool(locked)
        self.fold.setText(" " + ", ".join(words))
        self._draw()

    def _draw(self) -> None:
        unfolded = self.fold.isChecked()
        self.fold.setIcon(self._theme.icon("down-small" if unfolded else "right-small"))
        self.fold.setToolTip("Hide them" if unfolded else "Show what failed, and why")
        self.fold.setAccessibleName(f"{self.fold.text().strip()}. {self.fold.toolTip()}")
        self.close_all.setIcon(self._theme.icon("close"))


class ErrorList(QScrollArea):
    """Hidden while there is none; as high as what is unfolded, up to HIGHEST pixels; the newest on top."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(widgetResizable=True)
        self._theme = theme
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Import errors")
        self.summary = _Summary(theme)
        self.summary.fold.toggled.connect(self._fit)
        self.summary.close_all.clicked.connect(self.clear)
        page = QWidget()
        page.setObjectName("sidebar")
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(10, 0, 10, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self.summary)
        self.setWidget(page)
        self.hide()

    def add(self, error: UserError) -> None:
        self.put(ErrorCard(self._theme, error))

    def put(self, card: ErrorCard) -> None:
        """On top. One of kind "warn" needs the password of its file."""
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
        self.summary.fold.setChecked(False)

    def sizeHint(self) -> QSize:
        height = self._column.heightForWidth(self._inside())  # -1 where nothing in it breaks lines
        return QSize(180, min(HIGHEST, height if height >= 0 else self._column.sizeHint().height()))

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
        cards = self.cards()
        self.setVisible(bool(cards))
        self.summary.setVisible(len(cards) > 1)
        locked = sum(card.kind == "warn" for card in cards)
        self.summary.show_count(len(cards) - locked, locked)
        for card in cards:
            card.setVisible(len(cards) == 1 or self.summary.fold.isChecked())
        self.setFixedHeight(self.sizeHint().height())
