"""The documents of a conversation as chips: a click opens one, a cross takes it out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget

from app.widgets.cards import label
from app.widgets.theme import Theme

WIDEST, NARROW = 230, 142  # pixels: as wide as names get, and what every one has at least
GAP = 6  # between two
GONE_WORDS = 90
ICON_AND_GAPS = 26


@dataclass(frozen=True)
class ChipFace:
    """`gone`: why later questions do not look into it; "" where it is in the library."""

    id: int
    name: str
    gone: str = ""

    @property
    def tip(self) -> str:
        if not self.gone:
            return f"Open {self.name}"
        back = " Bring it back from the trash, or take it out here." if self.gone == "in the trash" else ""
        return f"{self.name} is {self.gone}: questions do not look into it.{back}"


def chip_faces(documents: Sequence[int], names: Mapping[int, str], trashed: Mapping[int, str]) -> tuple[ChipFace, ...]:
    """In the order of `documents`; `names`: of those in the library, `trashed`: of those in the trash."""
    faces = []
    for id in documents:
        gone = "" if id in names else "in the trash" if id in trashed else "no longer there"
        faces.append(ChipFace(id, names.get(id) or trashed.get(id) or "A document", gone))
    return tuple(faces)


class _OpenButton(QToolButton):
    """Icon and name; where that is too long its ending goes first, then its middle."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._show(WIDEST)

    def sizeHint(self) -> QSize:
        width = math.ceil(self._metrics().horizontalAdvance(self._name)) + ICON_AND_GAPS
        return QSize(min(WIDEST, width), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(ICON_AND_GAPS + 24, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show(self.width())

    def _metrics(self) -> QFontMetricsF:
        """In fractions of a pixel: a width rounded down would leave the middle out of a name that fits."""
        return QFontMetricsF(self.font())

    def _show(self, width: int) -> None:
        room, metrics, name = width - ICON_AND_GAPS, self._metrics(), self._name
        if metrics.horizontalAdvance(name) > room:
            name = name.removesuffix(".pdf")
        shown = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room)
        self.setText(f" {shown}".replace("&", "&&"))


class Chip(QWidget):
    """A document of the conversation. Signals: opened, removed (argument: document id)."""

    opened = Signal(int)
    removed = Signal(int)

    def __init__(self, theme: Theme, face: ChipFace) -> None:
        super().__init__()
        self.setObjectName("chip")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.face = face
        self.open_button = _OpenButton(face.name)
        icon = theme.icon("warning", "warn") if face.gone else theme.icon("document")
        self.open_button.setIcon(icon)
        self.open_button.setIconSize(QSize(14, 14))
        self.open_button.setToolTip(face.tip)
        self.open_button.setAccessibleName(face.tip)
        self.open_button.clicked.connect(lambda: self.opened.emit(face.id))
        remove = QToolButton(icon=theme.icon("close"), iconSize=QSize(12, 12))
        remove.setToolTip("Later questions do not look into it")
        remove.setAccessibleName(f"Remove {face.name} from this conversation")
        remove.clicked.connect(lambda: self.removed.emit(face.id))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(5, 2, 5, 2)
        layout.setSpacing(4)
        layout.addWidget(self.open_button)
        if face.gone:
            layout.addWidget(self._gone(face.gone))
        layout.addWidget(remove)
        self.setFixedHeight(24)

    def bound(self, width: int | None) -> None:
        """No wider than this; None: than a name may get. Why it is gone comes on top."""
        most = WIDEST if width is None else min(WIDEST, max(NARROW, width))
        self.setMaximumWidth(most + (GONE_WORDS if self.face.gone else 0))

    def _gone(self, words: str) -> QLabel:
        made = label(words, "warn", wrap=False)
        made.setToolTip(self.face.tip)
        return made
