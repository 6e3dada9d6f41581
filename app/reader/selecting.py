"""Selecting text of a page with the mouse: copied, or asked about."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeySequence, QMouseEvent, QShortcut
from PySide6.QtPdf import QPdfSelection
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.reader.page_view import PageView
from app.reader.pdf import PdfFile, lines
from app.widgets.cards import button

LEAST_DRAG = 4  # pixels; less is a click


class Selecting(QObject):
    """Watches the mouse over the pages.

    Signals:
        about: the reader asks about the selection (arguments: page, first character, number of characters; PDFium's).
    """

    about = Signal(int, int, int)

    def __init__(self, view: PageView, file: Callable[[], PdfFile | None]) -> None:
        super().__init__(view)
        self._view = view
        self._file = file
        self._from: tuple[int, QPointF] | None = None
        self._pressed = QPoint()
        self.selection: tuple[int, QPdfSelection] | None = None
        self.offer = QWidget(view.viewport())
        self.offer.setObjectName("offerCard")
        self.offer.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row = QHBoxLayout(self.offer)
        row.setContentsMargins(6, 5, 6, 5)
        row.setSpacing(6)
        row.addWidget(button("Ask about this", self.ask))
        row.addWidget(button("Copy", self.copy))
        self.offer.hide()
        view.viewport().installEventFilter(self)
        view.viewport().setCursor(Qt.CursorShape.IBeamCursor)
        view.verticalScrollBar().valueChanged.connect(lambda _: self.offer.hide())
        shortcut = QShortcut(QKeySequence.StandardKey.Copy, view, self.copy)
        shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)

    def clear(self) -> None:
        self.selection, self._from = None, None
        self._view.show_selected({})
        self.offer.hide()

    def ask(self) -> None:
        if self.selection is not None:
            page, found = self.selection
            self.about.emit(page, found.startIndex(), found.endIndex() - found.startIndex())
            self.clear()

    def copy(self) -> None:
        if self.selection is not None:
            QGuiApplication.clipboard().setText(self.selection[1].text())
            self.offer.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent):
            left = Qt.MouseButton.LeftButton
            if event.type() == QEvent.Type.MouseButtonPress and event.button() == left:
                self._begin(event.position())
            elif event.type() == QEvent.Type.MouseMove and event.buttons() & left:
                self._extend(event.position())
            elif event.type() == QEvent.Type.MouseButtonRelease and event.button() == left:
                self._finish(event.position())
        return False

    def _begin(self, place: QPointF) -> None:
        self.clear()
        self._pressed = place.toPoint()
        self._from = self._view.point_on_page(place)

    def _extend(self, place: QPointF) -> None:
        far = (place.toPoint() - self._pressed).manhattanLength() >= LEAST_DRAG
        start, end = self._from, self._view.point_on_page(place)
        file = self._file()
        if start is None or end is None or file is None or not far:
            return
        if end[0] != start[0]:  # a selection stays on its page
            return
        file.ask(lambda: self._measure(file, start, end[1]))

    def _measure(self, file: PdfFile, start: tuple[int, QPointF], end: QPointF) -> None:
        page, begin = start
        if file is not self._file() or self._from is None or self._from != start:
            return
        found = file.document.getSelection(page, begin, end)
        if found.isValid() and found.text().strip():
            self.selection = page, found
            boxes: list[QRectF] = lines([polygon.boundingRect() for polygon in found.bounds()])
            self._view.show_selected({page: boxes})

    def _finish(self, place: QPointF) -> None:
        """Behind the last measurement, which may still wait for a page to be drawn."""
        self._extend(place)
        file = self._file()
        if file is not None:
            file.ask(lambda: self._show_offer(place))

    def _show_offer(self, place: QPointF) -> None:
        if self.selection is None:
            return
        size, room = self.offer.sizeHint(), self._view.viewport().rect()
        x = min(max(4, round(place.x()) - size.width() // 2), room.width() - size.width() - 4)
        y = min(round(place.y()) + 12, room.height() - size.height() - 4)
        self.offer.setGeometry(x, y, size.width(), size.height())
        self.offer.show()
        self.offer.raise_()
