"""A scroll area as high as its content where there is room, and scrolling where there is not."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget


class FittingScroll(QScrollArea):
    def __init__(self, content: QWidget, least: int) -> None:
        super().__init__(widgetResizable=True)
        self._least = least
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is inside scrolls it into view
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        content.setObjectName(content.objectName() or "page")
        self.setWidget(content)
        content.installEventFilter(self)

    def sizeHint(self) -> QSize:
        content = self.widget()
        height = content.heightForWidth(self.width()) if content.hasHeightForWidth() else -1
        return QSize(300, height if height > 0 else content.sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(100, min(self._least, self.sizeHint().height()))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)
