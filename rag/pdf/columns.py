"""Reading order of pages whose content jumps between columns, found by where their text stands.

PDFium gives text in the order in which the file draws it, which nearly always is the order of reading. Only where it
leaps between the sides of empty strips, or climbs again and again, is the page put in order: pieces that cross a strip
divide the page into bands, and in a band the columns are read one after the other. Rows of a table stay rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rag.pdf.characters import Box, Characters
from rag.sentences import RIGHT_TO_LEFT

LEAPS = 6  # on a page, before it is looked at more closely
WIDE = 1.0  # gap that parts two pieces of a row, in heights of a line's letters
CLIMB = 2.0  # in the same measure: further up than to an exponent or a numerator
GUTTER = 0.8  # least width of an empty strip between columns, in the same measure
CROSSED = 0.3  # share of a strip's height that may be crossed by titles and figures
LEAST_SIDE = 0.1  # of the page's text stands at either side of it
COLUMN_LINES = 4
EQUAL = 0.6  # the narrowest column's width in the widest's; cells of a table differ more
FULL = 0.8  # of the column's width: half of the lines of running text are as long, few cells of a table are
COLUMN_WIDTH = 7.5  # in heights of letters, about 15 letters; columns of figures are narrower


@dataclass(frozen=True)
class Piece:
    """Characters `first` to `last` (inclusive), in one row without a wide gap."""

    first: int
    last: int
    box: Box

    @property
    def middle(self) -> float:
        return (self.box.bottom + self.box.top) / 2


Line = list[Piece]


def in_columns(characters: Characters, always: bool = False) -> list[Line] | None:
    """The page's lines in reading order, None where that is the order they have.

    Args:
        always: the lines are wanted whatever their order.
    """
    runs = characters.runs()
    letter = _letter(runs)
    if not always and _leaps(runs, letter) < LEAPS:
        return None
    leftwards = right_to_left(characters.text)
    rough = list(_pieces(enumerate(runs), letter))
    if not always and not _Page(rough, leftwards).moved:
        return None
    page = _Page(list(_pieces(_letters(characters), letter)), leftwards)
    return page.lines if always or page.moved else None


def right_to_left(text: str) -> bool:
    """Most letters are Hebrew or Arabic."""
    if text.isascii():
        return False
    letters = len(RIGHT_TO_LEFT.findall(text))
    return letters > 0 and 2 * letters > sum(map(str.isalpha, text))


def same_row(one: Box, other: Box) -> bool:
    overlap = min(one.top, other.top) - max(one.bottom, other.bottom)
    return overlap > 0.4 * min(one.top - one.bottom, other.top - other.bottom)


def _letter(boxes: Sequence[Box]) -> float:
    """Height of a line's letters: of most boxes."""
    return median(box.top - box.bottom for box in boxes) if boxes else 0.0


def _leaps(runs: Sequence[Box], letter: float) -> int:
    """How often the drawing goes on far to the right in the same row, to the same place, or climbs."""
    wide, climb = WIDE * letter, CLIMB * letter
    climbs = 0
    places: dict[int, int] = {}
    for one, other in pairwise(runs):
        if other.bottom - one.top > climb:
            climbs += 1
        elif other.left - one.right > wide and same_row(one, other):
            place = int(other.left / (2 * wide))
            places[place] = places.get(place, 0) + 1
    return max(climbs, *places.values(), 0) if places else climbs


def _letters(characters: Characters) -> Iterator[tuple[int, Box]]:
    return ((index, characters.box(index)) for index, letter in enumerate(characters.text) if not letter.isspace())


def _pieces(boxes: Iterable[tuple[int, Box]], letter: float) -> Iterator[Piece]:
    """Numbered boxes joined until a row ends or leaves a wide gap."""
    first = last = -1
    whole = Box(0, 0, 0, 0)
    for number, box in boxes:
        if first >= 0 and _goes_on(whole, box, WIDE * letter):
            last = number
            whole = united((whole, box)) if box.top > box.bottom else whole
            continue
        if first >= 0:
            yield Piece(first, last, whole)
        first = last = number
        whole = box
    if first >= 0:
        yield Piece(first, last, whole)


def _goes_on(line: Box, box: Box, wide: float) -> bool:
    height = box.top - box.bottom
    if height <= 0:  # PDFium's own hyphens and marks without a shape
        return True
    touching = min(line.top, box.top) - max(line.bottom, box.bottom)
    return (
        touching > 0.1 * min(line.top - line.bottom, height)
        and box.left - line.right <= wide
        and line.left - box.right <= wide
    )


def united(boxes: Sequence[Box]) -> Box:
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))


class _Page:
    """Attributes:
    lines: in reading order.
    moved: this order is not the file's.
    """

    def __init__(self, pieces: Sequence[Piece], leftwards: bool) -> None:
        self._leftwards = leftwards
        self._letter = _letter([piece.box for piece in pieces])
        self.moved = False
        self._gutters = _gutters([piece.box for piece in pieces])
        self._gutters = self._gutters if self._alike(pieces) else []
        self.lines = self._ordered(pieces)

    def _alike(self, pieces: Sequence[Piece]) -> bool:
        """The columns between the strips are about as wide as each other."""
        columns = self._columns([p for p in pieces if not self._crosses(p)])
        widths = [_width([p.box for p in column]) for column in columns if column]
        return len(widths) > 1 and min(widths) >= EQUAL * max(widths)

    def _crosses(self, piece: Piece) -> bool:
        return bisect_right(self._gutters, piece.box.left) != bisect_right(self._gutters, piece.box.right)

    def _columns(self, pieces: Sequence[Piece]) -> list[list[Piece]]:
        columns: list[list[Piece]] = [[] for _ in range(len(self._gutters) + 1)]
        for piece in pieces:
            columns[bisect_right(self._gutters, piece.box.left)].append(piece)
        return columns[::-1] if self._leftwards else columns

    def _ordered(self, pieces: Sequence[Piece]) -> list[Line]:
        if not self._gutters:
            return self._down(pieces)
        downwards = sorted(pieces, key=lambda p: -p.middle)
        across = [p for p in downwards if self._crosses(p)]
        rest = [p for p in downwards if not self._crosses(p)]
        ordered: list[Line] = []
        for edge in across:
            band = [p for p in rest if p.middle > edge.middle]
            rest = rest[len(band) :]
            ordered += [*self._band(band), [edge]]
        return ordered + self._band(rest)

    def _band(self, band: Sequence[Piece]) -> list[Line]:
        columns = self._columns(band)
        lines = [_rows(column) for column in columns]
        if not any(map(self._runs_on, lines)) or not all(map(self._runs_on, filter(_is_long, lines))):
            return self._down(band)
        sides = [bisect_right(self._gutters, p.box.left) for p in _as_drawn(band)]
        switches = sum(one != other for one, other in pairwise(sides))
        if switches >= max(LEAPS, 0.6 * sorted(map(len, lines))[-2]):
            self.moved = True
        return [line for column in columns for line in self._down(column)]

    def _runs_on(self, lines: Sequence[Line]) -> bool:
        """Running text: several lines, most of them about as long as the longest."""
        if not _is_long(lines):
            return False
        width = _width([p.box for line in lines for p in line])
        full = sum(sum(p.box.right - p.box.left for p in line) >= FULL * width for line in lines)
        return full >= 0.5 * len(lines) and width >= COLUMN_WIDTH * self._letter

    def _down(self, pieces: Sequence[Piece]) -> list[Line]:
        """Lines from top to bottom; moved when the file draws them in quite another order."""
        lines = _rows(sorted(pieces, key=lambda p: -p.middle))
        climb = CLIMB * self._letter
        climbs = sum(b.box.bottom - a.box.top > climb for a, b in pairwise(_as_drawn(pieces)))
        if climbs >= max(LEAPS, 0.3 * len(lines)):
            self.moved = True
        return [sorted(line, key=lambda p: -p.box.right if self._leftwards else p.box.left) for line in lines]


def _as_drawn(pieces: Sequence[Piece]) -> list[Piece]:
    return sorted(pieces, key=lambda p: p.first)


def _is_long(lines: Sequence[Line]) -> bool:
    return len(lines) >= COLUMN_LINES


def _width(boxes: Sequence[Box]) -> float:
    return max(box.right for box in boxes) - min(box.left for box in boxes)


def _rows(pieces: Sequence[Piece]) -> list[Line]:
    """Neighbours in the sequence that stand in one row, together."""
    lines: list[Line] = []
    for piece in pieces:
        if lines and same_row(lines[-1][-1].box, piece.box):
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return lines


def _gutters(boxes: Sequence[Box]) -> list[float]:
    """The middles of the empty strips that part the boxes into columns, from left to right."""
    gutter = _gutter(boxes)
    if gutter is None:
        return []
    left = [box for box in boxes if box.right <= gutter]
    right = [box for box in boxes if box.left >= gutter]
    return [*_gutters(left), gutter, *_gutters(right)]


def _gutter(boxes: Sequence[Box]) -> float | None:
    """The middle of the emptiest strip with text on both sides."""
    letter = _letter(boxes)
    edges = sorted([(b.left, b.top - b.bottom) for b in boxes] + [(b.right, b.bottom - b.top) for b in boxes])
    total = sum(box.top - box.bottom for box in boxes)
    best: tuple[float, float, float] | None = None
    covered = passed = 0.0
    for (x, change), (following, _) in pairwise(edges):
        covered += change
        passed -= min(change, 0.0)
        sides = min(passed, total - passed - covered)
        if following - x >= GUTTER * letter and covered <= CROSSED * sides and sides >= LEAST_SIDE * total:
            best = min(filter(None, (best, (covered, x - following, (x + following) / 2))))
    return best[2] if best else None
