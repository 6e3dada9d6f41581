"""A page's characters in reading order, before they are cleaned.

What PDFium leaves undone, done by where characters stand: a row that it broke (at an exponent, between cells) is
joined, columns that the file draws row by row are read one after the other, spaces that are only gaps are put in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pypdfium2 as pdfium

from rag.pdf.characters import Box, Characters
from rag.pdf.columns import Line, in_columns, right_to_left, same_row
from rag.pdf.glyph_codes import read_codes
from rag.pdf.leftwards import in_logical_order, rows_rejoined
from rag.pdf.restore import restored, spells_nothing
from rag.pdf.spaces import missing_spaces

LINE_END = re.compile(r" *\r?\n *")
TOUCHING = 0.25  # of a letter's height between it and its exponent
NEAR = 1.0  # between it and what follows, in the same measure
SPACE = 1.5  # the widest space, in the same measure; cells of a table are further apart
HYPHENS = "-\u2010\ufffe\x02"
SAMPLES = 12
CODES_REASON = "Its fonts do not say which letters they have; ligatures and quotes were read as TeX encodes them."
TURNS = 4  # quarter turns of a full one
DOWNWARDS = 3  # of them let lines that are written down the page, from right to left, run as others do


class Arranged(NamedTuple):
    """`origin[k]`: PDFium index of `text[k]`; of a character that was put in, that of its neighbour. None: k.

    `unmapped`: part of the characters that spell nothing and whose fonts do not say which letters they are.
    `restored`: what was done about such fonts. `lost`: letters whose codes mean nothing.
    """

    text: str
    origin: Sequence[int] | None
    unmapped: float = 0.0
    restored: str = ""
    lost: int = 0


def arranged(page: pdfium.PdfPage) -> Arranged:
    """The page's text in reading order."""
    with Characters(page) as shown:
        found = _upright(page, shown)
        unmapped = shown.unmapped() if shown.lacks_maps() and spells_nothing(found.text) else None
        codes = set(shown.lost_codes())
    if unmapped is not None and found.origin is not None:
        unmapped = [unmapped[index] for index in found.origin]
    text, reason = restored(found.text, unmapped)
    share = 0.0 if reason or not unmapped else sum(unmapped) / len(unmapped)
    if reason or not codes:
        return Arranged(text, found.origin, share, reason)
    places = range(len(text)) if found.origin is None else found.origin
    lost = [at for at, index in enumerate(places) if index in codes]
    text, left = read_codes(text, lost)
    return Arranged(text, found.origin, share, CODES_REASON if left < len(lost) else "", left)


def _upright(page: pdfium.PdfPage, shown: Characters) -> Arranged:
    turn = _turn(shown)
    if turn is None:
        shown.turn = DOWNWARDS
        return _in_order(shown, downwards=True)
    if turn != page.get_rotation() // 90:
        return _turned(page, shown, turn)
    shown.turn = turn
    return _in_order(shown)


def _turned(page: pdfium.PdfPage, shown: Characters, turn: int) -> Arranged:
    """PDFium mixes up the lines of pages whose letters lie: they are read upright, and found again as shown."""
    before = page.get_rotation()
    page.set_rotation(90 * turn)
    try:
        with Characters(page) as upright:
            upright.turn = turn
            found = _in_order(upright)
            same = _same_characters(upright, shown)
    finally:
        page.set_rotation(before)
    indices = range(len(found.text)) if found.origin is None else found.origin
    return Arranged(found.text, [same[index] for index in indices])


def _same_characters(one: Characters, other: Characters) -> list[int]:
    """For every index of `one` that of `other`; PDFium's own characters go with the one before them."""
    places = {_place(other, index): index for index in range(len(other.text)) if not other.is_generated(index)}
    same: list[int] = []
    for index in range(len(one.text)):
        known = None if one.is_generated(index) else places.get(_place(one, index))
        same.append(known if known is not None else same[-1] if same else 0)
    return same


def _place(characters: Characters, index: int) -> tuple[float, float, bool, str]:
    x, y = characters.origin(index)
    letter = characters.text[index]
    return round(x, 2), round(y, 2), letter in HYPHENS, "" if letter in HYPHENS else letter


def _turn(characters: Characters) -> int | None:
    """Quarter turns of most of the letters, counter-clockwise; None when they stand one below the other."""
    text = characters.text
    votes: dict[int | None, int] = {}
    for index in range(0, len(text) - 1, max(1, len(text) // SAMPLES)):
        if text[index].isalnum() and text[index + 1].isalnum():
            vote = _direction(characters, index)
            votes[vote] = votes.get(vote, 0) + 1
    return max(votes, key=lambda vote: votes[vote]) if votes else 0


def _direction(characters: Characters, index: int) -> int | None:
    angle = round(characters.angle(index) / 1.5707963) % TURNS
    (x, y), (to_x, to_y) = characters.origin(index), characters.origin(index + 1)
    along, across = abs(to_x - x), abs(to_y - y)
    if angle % 2:
        along, across = across, along
    height = characters.box(index).height
    return None if along < 0.2 * across and across < 2 * height else angle


def _in_order(characters: Characters, downwards: bool = False) -> Arranged:
    rejoined = None if downwards else rows_rejoined(characters)
    found = _rows_in_order(characters, downwards) if rejoined is None else Arranged(*rejoined)
    text, origin = in_logical_order(found.text, found.origin, characters)
    return Arranged(text, origin)


def _rows_in_order(characters: Characters, downwards: bool) -> Arranged:
    text = characters.text
    edits = dict.fromkeys(missing_spaces(characters), " ")
    lines = in_columns(characters, downwards)
    if lines is not None:
        return _composed(text, [*_line_parts(text, lines, right_to_left(text))], edits)
    parts = list(_row_parts(characters, right_to_left(text)))
    return _composed(text, parts, edits) if len(parts) > 1 or edits else Arranged(text, None)


Part = tuple[int, int, str]  # characters from, to (exclusive), and what is put in after them


def _composed(text: str, parts: Sequence[Part], before: dict[int, str]) -> Arranged:
    """`before`: what is put in before a character."""
    pieces: list[str] = []
    origin: list[int] = []
    for start, end, after in parts:
        places = [at for at in before if start < at < end]
        for first, last in zip([start, *places], [*places, end], strict=True):
            pieces += [text[first:last], before[last] if last in places else after]
            origin += range(first, last)
            origin += [max(first, last - 1)] * len(pieces[-1])
    return Arranged("".join(pieces), origin)


def _row_parts(characters: Characters, leftwards: bool) -> Iterator[Part]:
    """The text without the line ends that stand inside a row."""
    text = characters.text
    start = 0
    for match in LINE_END.finditer(text):
        first, last = match.start() - 1, match.end()
        if first < 0 or last >= len(text) or text[first].isspace() or text[last].isspace():
            continue
        one, other = characters.box(first), characters.box(last)
        between = _between(other, one) if leftwards else _between(one, other)
        if between is not None:
            yield start, match.start(), between or " " * (" " in match[0])
            start = last
    yield start, len(text), ""


def _between(one: Box, other: Box) -> str | None:
    """What stands between two letters of a row; None when the second is not the next in the row of the first."""
    height = max(one.height, other.height)
    gap = other.left - one.right
    if gap < -TOUCHING * height or min(one.top, other.top) <= max(one.bottom, other.bottom):
        return None
    if gap <= TOUCHING * height:
        return ""
    if gap > NEAR * height and not same_row(one, other):
        return None
    return " " if gap <= SPACE * height else "\t"


def _line_parts(text: str, lines: Sequence[Line], leftwards: bool) -> Iterator[Part]:
    for number, line in enumerate(lines):
        for one, other in pairwise(line):
            between = _between(other.box, one.box) if leftwards else _between(one.box, other.box)
            yield one.first, one.last + 1, " " if between is None else between
        last = line[-1]
        following = text[lines[number + 1][0].first] if number + 1 < len(lines) else ""
        if text[last.last] in HYPHENS and text[last.last - 1].islower() and following.islower():
            yield last.first, last.last, "\ufffe"
        else:
            yield last.first, last.last + 1, "\n" if following else ""
