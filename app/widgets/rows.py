"""List rows of two lines with a state icon and an optional progress bar, painted, so that long lists are cheap."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.widgets.theme import Theme

FACE = Qt.ItemDataRole.UserRole + 1
PADDING = 8
ICON = 14


@dataclass(frozen=True)
class RowFace:
    """What a row shows. `progress` 0 to 1, None for no bar; `busy` a running mark; colours by theme
    name; `brief` stands for `detail` where that has no room."""

    title: str
    detail: str = ""
    icon: str = ""
    icon_color: str = "muted"
    detail_color: str = "muted"
    progress: float | None = None
    busy: bool = False
    brief: str = ""


class RowDelegate(QStyledItemDelegate):
    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme = theme
        self._view = view
        theme.changed.connect(view.viewport().update)

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        lines = QFontMetrics(self._view.font()).height() + QFontMetrics(self._small()).height()
        return QSize(120, lines + 2 * PADDING + 3)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        face = index.data(FACE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # each title by its own first letter
        self._background(painter, option)
        area = option.rect.adjusted(PADDING + 4, PADDING, -PADDING - 2, -PADDING)
        self._icon(painter, face, area)
        text = area.adjusted(ICON + 9, 0, 0, 0)
        self._title(painter, face, text, option)
        self._detail(painter, face, text)
        painter.restore()

    def _background(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        if not (selected or hovered):
            return
        box = QRectF(option.rect).adjusted(4, 1, -4, -1)
        painter.setBrush(self._theme.color("selected" if selected else "hover"))
        focused = selected and self._view.hasFocus()
        painter.setPen(self._theme.color("focus") if focused else Qt.PenStyle.NoPen)
        painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5) if focused else box, 6, 6)

    def _icon(self, painter: QPainter, face: RowFace, area: QRect) -> None:
        if face.icon:
            top = area.top() + (QFontMetrics(self._view.font()).height() - ICON) // 2
            icon = self._theme.icon(face.icon, face.icon_color)
            icon.paint(painter, QRect(area.left(), top, ICON, ICON))

    def _title(self, painter: QPainter, face: RowFace, area: QRect, option: QStyleOptionViewItem) -> None:
        metrics = QFontMetrics(self._view.font())
        width = area.width() - (16 if face.busy else 0)
        painter.setFont(self._view.font())
        painter.setPen(self._theme.color("text"))
        painter.drawText(
            area.left(),
            area.top() + metrics.ascent(),
            metrics.elidedText(face.title, Qt.TextElideMode.ElideRight, width),
        )
        if face.busy:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color("accent"))
            middle = area.top() + metrics.height() / 2
            painter.drawEllipse(QRectF(area.right() - 8, middle - 4, 8, 8))

    def _detail(self, painter: QPainter, face: RowFace, area: QRect) -> None:
        font = self._small()
        metrics = QFontMetrics(font)
        y = area.top() + QFontMetrics(self._view.font()).height() + 3
        painter.setFont(font)
        painter.setPen(self._theme.color(face.detail_color))
        words = face.detail if metrics.horizontalAdvance(face.detail) <= area.width() else face.brief or face.detail
        text = metrics.elidedText(words, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area.left(), y + metrics.ascent(), text)
        if face.progress is not None:
            self._bar(painter, face.progress, QRectF(area.left(), area.bottom() + 3, area.width(), 3))

    def _bar(self, painter: QPainter, progress: float, box: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("line"))
        painter.drawRoundedRect(box, 1.5, 1.5)
        painter.setBrush(self._theme.color("accent"))
        painter.drawRoundedRect(QRectF(box.topLeft(), QSize(int(box.width() * progress), 3)), 1.5, 1.5)

    def _small(self) -> QFont:
        font = QFont(self._view.font())
        font.setPointSizeF(max(7.5, font.pointSizeF() - 1.0))
        return font


class RowList(QListView):
    """A list of RowFaces (role FACE)."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName(name)
        self.setItemDelegate(RowDelegate(theme, self))
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setFrameShape(QListView.Shape.NoFrame)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Where no row shows that the list has the focus, a frame does."""
        super().paintEvent(event)
        if self.hasFocus() and not self.selectionModel().hasSelection():
            paint_focus(self.viewport(), self._theme)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.viewport().update()


def paint_focus(widget: QWidget, theme: Theme) -> None:
    """A frame around what has the focus and nothing else to show it by; for paint events."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(theme.color("focus"), 1.5))
    painter.drawRoundedRect(QRectF(widget.rect()).adjusted(1, 1, -1, -1), 4, 4)
