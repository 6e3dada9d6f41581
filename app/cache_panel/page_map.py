"""The page map: one small cell per page of a conversation, coloured by what it is and where it lies.

Only the cells that are seen are painted, so that thousands of pages cost nothing.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QToolTip, QWidget

from app.widgets.format import count
from app.widgets.theme import Theme
from engine.messages import PageBits, StateReport

CELL = 11
GAP = 3
MOST_HEIGHT = 12 * (CELL + GAP)
KINDS = (
    ("shared", "bar_retrieve"),
    ("own", "bar_restore"),
    ("end", "bar_end"),
    ("approximate", "bar_first"),
    ("must be read", "bar_prefill"),
)
COLORS = dict(KINDS)
WORDS = {"approximate": "approximate (moved up, or computed on what was)", "end": "the unfinished end"}
MOVES_UP = "kept; moves up to here with the next question (approximate)"


def kind_of(bits: int) -> str:
    """One of KINDS."""
    if bits & PageBits.MOVES:
        return "approximate"
    if not bits & (PageBits.MEMORY | PageBits.DISK):
        return "must be read"
    if bits & PageBits.SHIFTED:
        return "approximate"
    if bits & PageBits.TAIL:
        return "end"
    return "shared" if bits & PageBits.SHARED else "own"


def page_words(report: StateReport, place: int) -> str:
    """`Tokens 1,280–1,343: shared, in memory and on disk`."""
    bits, size = report.pages[place], report.page_tokens
    start, stop = place * size, min((place + 1) * size, report.tokens)
    where = [name for bit, name in ((PageBits.MEMORY, "in memory"), (PageBits.DISK, "on disk")) if bits & bit]
    words = [MOVES_UP if bits & PageBits.MOVES else WORDS.get(kind_of(bits), kind_of(bits))]
    words += [" and ".join(where)] if where else []
    words += ["computed on another kind of processor"] if bits & PageBits.FOREIGN else []
    return f"Tokens {count(start)}–{count(stop - 1)}: {', '.join(words)}"


class PageMap(QWidget):
    """Cells in reading order; as tall as they need. A cell that is on disk only is hollow."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._report: StateReport | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    def show_pages(self, report: StateReport) -> None:
        self._report = report
        kinds = [kind_of(bits) for bits in report.pages]
        told = ", ".join(f"{kinds.count(kind)} {kind}" for kind, _ in KINDS if kind in kinds)
        self.setAccessibleName(f"Page map: {told or 'no pages'}")
        self.updateGeometry()
        self.update()

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        pages = len(self._report.pages) if self._report else 0
        return -(-pages // self._columns(width)) * (CELL + GAP)

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(self.width(), 200)))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._report is None:
            return
        painter = QPainter(self)
        columns, seen = self._columns(self.width()), event.rect()
        first = max(0, seen.top() // (CELL + GAP)) * columns
        last = (seen.bottom() // (CELL + GAP) + 1) * columns
        for place in range(first, min(last, len(self._report.pages))):
            self._paint_cell(painter, self._cell(place, columns), self._report.pages[place])

    def _paint_cell(self, painter: QPainter, cell: QRect, bits: int) -> None:
        color = self._theme.color(COLORS[kind_of(bits)])
        if bits & PageBits.MEMORY and not bits & PageBits.MOVES:
            painter.fillRect(cell, color)
            return
        if bits & PageBits.DISK and not bits & PageBits.MOVES:
            pale = self._theme.color(COLORS[kind_of(bits)])
            pale.setAlpha(70)
            painter.fillRect(cell, pale)
        painter.setPen(QPen(color, 1, Qt.PenStyle.SolidLine if bits else Qt.PenStyle.DotLine))
        painter.drawRect(cell.adjusted(0, 0, -1, -1))

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(event.pos()), self)
            return True
        return super().event(event)

    def words_at(self, point: QPoint) -> str:
        """What the cell under the point is; "" between cells."""
        if self._report is None:
            return ""
        columns = self._columns(self.width())
        place = point.y() // (CELL + GAP) * columns + point.x() // (CELL + GAP)
        inside = point.x() // (CELL + GAP) < columns and 0 <= place < len(self._report.pages)
        return page_words(self._report, place) if inside else ""

    def _columns(self, width: int) -> int:
        return max(1, (width + GAP) // (CELL + GAP))

    def _cell(self, place: int, columns: int) -> QRect:
        row, column = divmod(place, columns)
        return QRect(column * (CELL + GAP), row * (CELL + GAP), CELL, CELL)


class MapArea(QScrollArea):
    """The map, scrolled where it is tall."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(widgetResizable=True)
        self.map = PageMap(theme)
        self.map.setObjectName("page")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(self.map)

    def show_pages(self, report: StateReport) -> None:
        self.map.show_pages(report)
        self._fit()

    def resizeEvent(self, event: QEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        tall = self.map.heightForWidth(self.viewport().width())
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(policy.ScrollBarAsNeeded if tall > MOST_HEIGHT else policy.ScrollBarAlwaysOff)
        self.setFixedHeight(max(CELL + GAP, min(MOST_HEIGHT, tall)))
