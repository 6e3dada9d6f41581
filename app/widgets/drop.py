"""Files dropped anywhere on the window, with a target that shows where they would go."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.widgets.theme import Theme


def dropped_files(data: QMimeData) -> list[Path]:
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


class DropTarget(QWidget):
    """Covers `host` while files hang over it. Signals: dropped (argument: list of Path)."""

    dropped = Signal(list)

    def __init__(self, theme: Theme, host: QWidget) -> None:
        super().__init__(host)
        self._theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName("Drop PDFs to add them to the library")
        self.hide()
        host.setAcceptDrops(True)
        host.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.DragEnter and isinstance(event, QDragEnterEvent):
            return self._enter(event)
        if kind == QEvent.Type.DragMove and self.isVisible():
            event.accept()
            return True
        if kind == QEvent.Type.DragLeave:
            self.hide()
        elif kind == QEvent.Type.Drop and isinstance(event, QDropEvent):
            self.hide()
            files = dropped_files(event.mimeData())
            event.acceptProposedAction()
            if files:
                self.dropped.emit(files)
            return True
        return False

    def _enter(self, event: QDragEnterEvent) -> bool:
        if not dropped_files(event.mimeData()):
            return False
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        host = self.parentWidget()
        self.setGeometry(host.rect())
        self.show()
        self.raise_()
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = self._theme.color("window")
        veil.setAlpha(205)
        painter.fillRect(self.rect(), veil)
        pen = QPen(self._theme.color("accent"), 2.5, Qt.PenStyle.DashLine)
        painter.setPen(pen)
        fill = self._theme.color("accent_soft")
        fill.setAlpha(140)
        painter.setBrush(fill)
        box = QRectF(self.rect()).adjusted(28, 28, -28, -28)
        painter.drawRoundedRect(box, 14, 14)
        font = self.font()
        font.setPointSizeF(font.pointSizeF() + 5)
        painter.setFont(font)
        painter.setPen(self._theme.color("accent"))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, "Drop PDFs to add them and ask about them")
