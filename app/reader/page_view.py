"""Pages below each other; only what can be seen is rendered, at the screen's own resolution."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QImage, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea

from app.reader.pdf import PdfFile
from app.widgets.rows import paint_focus
from app.widgets.theme import Theme

GAP = 12
MARGIN = 14
POINT = 96 / 72
LARGEST_PIXELS = 12_000_000
CACHE_BYTES = 96 << 20
ZOOMS = (0.25, 0.4, 0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Place:
    """A page and how far down it the view begins (0 top, 1 bottom)."""

    page: int
    fraction: float = 0.0


class PageView(QAbstractScrollArea):
    """Signals:
    page_changed: another page is in the middle of the view (argument: page index).
    zoom_changed: argument: factor, 1.0 is the printed size.
    """

    page_changed = Signal(int)
    zoom_changed = Signal(float)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._file: PdfFile | None = None
        self._tops: list[float] = [0.0]
        self._images: OrderedDict[tuple[int, int], QImage] = OrderedDict()
        self._marks: Mapping[int, Sequence[QRectF]] = {}
        self._found: Mapping[int, Sequence[QRectF]] = {}
        self._others: dict[int, Sequence[QRectF]] = {}  # found, too
        self._selected: Mapping[int, Sequence[QRectF]] = {}
        self._zoom = 1.0
        self._fit = True
        self._page = -1
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Document pages")
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        theme.changed.connect(self.viewport().update)

    # --- content ----------------------------------------------------------------------------------
    def show_file(self, file: PdfFile | None) -> None:
        self._file = file
        self._images.clear()
        self._marks, self._found, self._selected, self._page = {}, {}, {}, -1
        self._others = {}
        if file is not None:
            file.rendered.connect(self._take)
            file.sizes_known.connect(self._sizes_known)
        self._lay_out()
        self.verticalScrollBar().setValue(0)
        self._scrolled()

    def show_marks(self, marks: Mapping[int, Sequence[QRectF]]) -> None:
        """Highlights by page, in points."""
        self._marks = marks
        self.viewport().update()

    def show_found(self, found: Mapping[int, Sequence[QRectF]]) -> None:
        """The one that the reader is at."""
        self._found = found
        self.viewport().update()

    def show_others(self, page: int, boxes: Sequence[QRectF]) -> None:
        """Everything that was found on a page, marked lightly."""
        self._others[page] = boxes
        self.viewport().update()

    def forget_others(self) -> None:
        self._others.clear()
        self.viewport().update()

    def show_selected(self, selected: Mapping[int, Sequence[QRectF]]) -> None:
        self._selected = selected
        self.viewport().update()

    def point_on_page(self, place: QPointF) -> tuple[int, QPointF] | None:
        """Page and point on it, in points from its top left corner, below a place of the viewport."""
        if self._file is None or not self._file.pages:
            return None
        page = self._page_at(self.verticalScrollBar().value() + place.y())
        return page, (place - self._box(page).topLeft()) / self._scale()

    # --- place and zoom ---------------------------------------------------------------------------
    @property
    def page(self) -> int:
        return max(0, self._page)

    @property
    def zoom(self) -> float:
        return self._zoom

    @property
    def fits_width(self) -> bool:
        return self._fit

    def place(self) -> Place:
        y = self.verticalScrollBar().value()
        page = self._page_at(y)
        return Place(page, (y - self._tops[page]) / max(1.0, self._height(page)))

    def go(self, place: Place) -> None:
        page = min(max(0, place.page), len(self._tops) - 2)
        if page >= 0:
            y = self._tops[page] + place.fraction * self._height(page)
            self.verticalScrollBar().setValue(round(y) - (GAP if place.fraction == 0 else 0))

    def reveal(self, page: int, box: QRectF) -> None:
        """Scrolls so that `box` (in points) stands in the upper third."""
        if self._file is None:
            return
        y = self._tops[page] + box.top() * self._scale()
        self.verticalScrollBar().setValue(round(y - self.viewport().height() / 3))
        x = MARGIN + box.left() * self._scale() - 40
        self.horizontalScrollBar().setValue(max(0, round(x)))

    def set_zoom(self, zoom: float) -> None:
        self._fit = False
        self._apply_zoom(min(max(zoom, ZOOMS[0]), ZOOMS[-1]))

    def zoom_step(self, direction: int) -> None:
        steps = [z for z in ZOOMS if (z > self._zoom + 0.01 if direction > 0 else z < self._zoom - 0.01)]
        if steps:
            self.set_zoom(steps[0] if direction > 0 else steps[-1])

    def fit_width(self) -> None:
        self._fit = True
        self._apply_zoom(self._fitting_zoom())

    def _apply_zoom(self, zoom: float) -> None:
        here = self.place()
        self._zoom = zoom
        self._lay_out()
        self.go(here)
        self.zoom_changed.emit(zoom)
        self._wish()

    def _fitting_zoom(self) -> float:
        if self._file is None or not self._file.sizes:
            return 1.0
        sample = self._file.sizes[self.page : self.page + 3] or self._file.sizes[:1]
        widest = max(size.width() for size in sample)
        return max(0.1, (self.viewport().width() - 2 * MARGIN) / max(1.0, widest * POINT))

    # --- geometry ---------------------------------------------------------------------------------
    def _scale(self) -> float:
        return self._zoom * POINT

    def _height(self, page: int) -> float:
        return self._tops[page + 1] - self._tops[page] - GAP if page + 1 < len(self._tops) else 1.0

    def _lay_out(self) -> None:
        if self._file is not None and self._fit and (fitting := self._fitting_zoom()) != self._zoom:
            self._zoom = fitting
            self.zoom_changed.emit(fitting)
        scale, y, tops = self._scale(), float(GAP), []
        sizes = self._file.sizes if self._file is not None else []
        for size in sizes:
            tops.append(y)
            y += size.height() * scale + GAP
        self._tops = [*tops, y]
        height, width = self.viewport().height(), self.viewport().width()
        widest = max((size.width() for size in sizes), default=0.0) * scale + 2 * MARGIN
        self.verticalScrollBar().setRange(0, max(0, round(y - height)))
        self.verticalScrollBar().setPageStep(height)
        self.verticalScrollBar().setSingleStep(48)
        self.horizontalScrollBar().setRange(0, 0 if self._fit else max(0, round(widest - width)))
        self.horizontalScrollBar().setPageStep(width)
        self.viewport().update()

    def _page_at(self, y: float) -> int:
        return min(max(0, bisect_right(self._tops, y) - 1), max(0, len(self._tops) - 2))

    def _visible(self) -> range:
        if self._file is None or not self._file.pages:
            return range(0)
        top = self.verticalScrollBar().value()
        return range(self._page_at(top), self._page_at(top + self.viewport().height()) + 1)

    def _box(self, page: int) -> QRectF:
        size = self._file.sizes[page] * self._scale() if self._file else QSize(0, 0)
        x = max(float(MARGIN), (self.viewport().width() - size.width()) / 2) - self.horizontalScrollBar().value()
        return QRectF(x, self._tops[page] - self.verticalScrollBar().value(), size.width(), size.height())

    def _pixels(self, page: int) -> QSize:
        size = self._box(page).size() * self.devicePixelRatioF()
        shrink = min(1.0, (LARGEST_PIXELS / max(1.0, size.width() * size.height())) ** 0.5)
        return (size * shrink).toSize()

    # --- rendering --------------------------------------------------------------------------------
    def _scrolled(self) -> None:
        middle = self.verticalScrollBar().value() + self.viewport().height() / 3
        page = self._page_at(middle)
        if page != self._page and self._file is not None:
            self._page = page
            self.page_changed.emit(page)
        self._wish()
        self.viewport().update()

    def _wish(self) -> None:
        if self._file is None:
            return
        seen = self._visible()
        near = [*seen, seen.stop, seen.start - 1] if len(seen) else []
        wanted = [(page, self._pixels(page)) for page in near if 0 <= page < self._file.pages]
        self._file.wish([(page, size) for page, size in wanted if (page, size.width()) not in self._images])

    def _take(self, page: int, image: QImage) -> None:
        if self.sender() is not self._file:
            return
        self._images[(page, image.width())] = image
        total = sum(kept.sizeInBytes() for kept in self._images.values())
        while total > CACHE_BYTES and len(self._images) > 4:
            total -= self._images.popitem(last=False)[1].sizeInBytes()
        self.viewport().update()

    def _sizes_known(self) -> None:
        here = self.place()
        self._lay_out()
        self.go(here)
        self._wish()

    def _image(self, page: int) -> QImage | None:
        """The sharp image, else any other of this page until the sharp one is there."""
        exact = (page, self._pixels(page).width())
        if exact in self._images:
            self._images.move_to_end(exact)
            return self._images[exact]
        return next((image for (other, _), image in self._images.items() if other == page), None)

    # --- events -----------------------------------------------------------------------------------
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), self._theme.color("page_bg"))
        for page in self._visible():
            self._paint_page(painter, page)
        painter.end()
        if self.hasFocus():
            paint_focus(self.viewport(), self._theme)

    def _paint_page(self, painter: QPainter, page: int) -> None:
        box = self._box(page)
        painter.fillRect(box, Qt.GlobalColor.white)
        image = self._image(page)
        if image is not None:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            painter.drawImage(box, image)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Multiply)
        self._paint_boxes(painter, box.topLeft(), self._others.get(page, ()), "bar_restore", 45)
        self._paint_boxes(painter, box.topLeft(), self._found.get(page, ()), "bar_restore", 90)
        self._paint_boxes(painter, box.topLeft(), self._marks.get(page, ()), "highlight", 170)
        self._paint_boxes(painter, box.topLeft(), self._selected.get(page, ()), "bar_prefill", 90)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)

    def _paint_boxes(self, painter: QPainter, origin: QPointF, boxes: Sequence[QRectF], color: str, alpha: int) -> None:
        ink = self._theme.color(color)
        ink.setAlpha(alpha)
        scale = self._scale()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        for box in boxes:
            shape = QRectF(box.topLeft() * scale + origin, box.size() * scale).adjusted(-1.5, -1.5, 1.5, 1.5)
            painter.drawRoundedRect(shape, 2.5, 2.5)

    def resizeEvent(self, event: QResizeEvent) -> None:
        here = self.place()
        self._lay_out()
        self.go(here)
        self._wish()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        self.viewport().update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom_step(1 if event.angleDelta().y() > 0 else -1)
        else:
            super().wheelEvent(event)
