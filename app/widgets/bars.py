"""A horizontal bar of coloured parts with a legend: bytes by tier, milliseconds by phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.widgets.theme import Theme


@dataclass(frozen=True)
class Part:
    """One stretch of a bar. `value` in the bar's unit, `shown` as the legend prints it, `help`: what the name means."""

    name: str
    value: float
    shown: str
    color: str
    help: str = ""

    @property
    def described(self) -> str:
        said = f"{self.name} {self.shown}"
        return f"{said}: {self.help}" if self.help else said


def segments(values: Sequence[float], width: float, minimum: float = 1.0) -> list[float]:
    """Widths in pixels, in proportion, that add up to `width`; a part that is not nothing can just be seen."""
    total = sum(values)
    if total <= 0 or width <= 0:
        return [0.0] * len(values)
    raised = [max(value / total * width, minimum) if value > 0 else 0.0 for value in values]
    excess = sum(raised) - width
    largest = max(range(len(raised)), key=raised.__getitem__)
    raised[largest] = max(minimum, raised[largest] - excess)
    return raised


class StackBar(QWidget):
    """Parts side by side; the whole width stands for `total` (or for their sum). Legend below when asked."""

    def __init__(self, theme: Theme, legend: bool = True, height: int = 14, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._legend = legend
        self._height = height
        self._parts: tuple[Part, ...] = ()
        self._total = 0.0
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(legend)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    def show_parts(self, parts: Sequence[Part], total: float = 0.0) -> None:
        self._parts = tuple(parts)
        self._total = max(total, sum(part.value for part in parts))
        described = ", ".join(f"{part.name} {part.shown}" for part in parts if part.value > 0)
        self.setAccessibleName(described or "empty")
        self.setToolTip("\n".join(part.described for part in parts if part.value > 0))
        self.updateGeometry()
        self.update()

    def hasHeightForWidth(self) -> bool:
        return self._legend

    def heightForWidth(self, width: int) -> int:
        return self._height + (self._legend_height(width) if self._legend else 0)

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(self.width(), 200)))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self._height)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_bar(painter)
        if self._legend:
            self._paint_legend(painter)

    def _paint_bar(self, painter: QPainter) -> None:
        outline = QPainterPath()
        outline.addRoundedRect(QRectF(0, 0, self.width(), self._height), 4, 4)
        painter.save()
        painter.setClipPath(outline)
        painter.fillRect(0, 0, self.width(), self._height, self._theme.color("line"))
        rest = max(0.0, self._total - sum(part.value for part in self._parts))
        x = 0.0
        for part, width in zip(
            self._parts, segments([*(p.value for p in self._parts), rest], self.width()), strict=False
        ):
            painter.fillRect(QRectF(x, 0, width, self._height), self._color(part))
            x += width
        painter.restore()

    def _paint_legend(self, painter: QPainter) -> None:
        metrics = QFontMetrics(self.font())
        for part, x, y in self._legend_places(self.width()):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._color(part))
            painter.drawRoundedRect(QRectF(x, y + metrics.height() / 2 - 4, 8, 8), 2, 2)
            painter.setPen(self._theme.color("muted"))
            painter.drawText(x + 13, y + metrics.ascent(), f"{part.name} {part.shown}")

    def _legend_places(self, width: int) -> list[tuple[Part, int, int]]:
        metrics = QFontMetrics(self.font())
        x, y, places = 0, self._height + 7, []
        for part in self._parts:
            if part.value <= 0:
                continue
            needed = 13 + metrics.horizontalAdvance(f"{part.name} {part.shown}") + 16
            if x and x + needed - 16 > width:
                x, y = 0, y + metrics.height() + 3
            places.append((part, x, y))
            x += needed
        return places

    def _legend_height(self, width: int) -> int:
        places = self._legend_places(width)
        line = QFontMetrics(self.font()).height()
        return places[-1][2] - self._height + line if places else 0

    def _color(self, part: Part) -> QColor:
        return self._theme.color(part.color)
