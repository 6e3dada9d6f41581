"""A one-line label for places with little room: shorter forms of the same first, an ellipsis last."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStyle, QStyleOption


class ElidedLabel(QLabel):
    """`text` is the whole of it, whatever is shown."""

    def __init__(
        self,
        text: str = "",
        mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        alignment: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
    ) -> None:
        super().__init__(text, alignment=alignment)
        self._mode = mode
        self._shorter: tuple[str, ...] = ()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def setText(self, text: str) -> None:
        self._shorter = ()
        super().setText(text)

    def show_forms(self, forms: Sequence[str]) -> None:
        """The same in shorter and shorter words; the first that has room is shown."""
        self.setText(forms[0])
        self._shorter = tuple(forms[1:])

    def shown(self) -> str:
        """What can be seen of it."""
        width = self.contentsRect().width()
        forms = (self.text(), *self._shorter)
        fitting = (form for form in forms if self.fontMetrics().horizontalAdvance(form) <= width)
        return next(fitting, self.fontMetrics().elidedText(forms[-1], self._mode, width))

    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        option = QStyleOption()
        option.initFrom(self)
        area, role = self.contentsRect(), self.foregroundRole()
        self.style().drawItemText(
            painter, area, int(self.alignment()), option.palette, self.isEnabled(), self.shown(), role
        )
        if self.hasFocus():
            self.style().drawPrimitive(QStyle.PrimitiveElement.PE_FrameFocusRect, option, painter, self)
