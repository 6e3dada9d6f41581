"""Lines of Hebrew and Arabic in the order in which they are read, found by where their letters stand.

PDFium turns them round, but takes the signs at the ends of a number or a Latin word for a part of it ("בעמוד .42" for
"בעמוד 42."), reads a line with more Latin than Hebrew words from the left, and puts points and vowels where they
stand, before their letter and with spaces beside them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from statistics import median

from rag.pdf.characters import Box, Characters
from rag.pdf.columns import right_to_left
from rag.sentences import RIGHT_TO_LEFT

LINE = re.compile(r"[^\r\n]+")
ARABIC = re.compile("[\u0600-\u08ff\ufb50-\ufdff\ufe70-\ufefc]")
LETTER = "\u0590-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb1d-\ufefc"  # their digits run to the right, as all do
# What runs to the right within such a line: words with what stands between them; a number with its own signs, alone.
_ARABIC_DIGITS = "\u0660-\u0669\u06f0-\u06f9"
WORDS = rf"[\\/@#<$~]?[^\W\d_{LETTER}](?:[^{LETTER}{_ARABIC_DIGITS}]*[^\W_{LETTER}{_ARABIC_DIGITS}])?"
NUMBER = rf"\d+(?:[.,:/+-]\d+)*(?:(?<=[0-9]){WORDS})?"
SIGNS = r"[%‰$€₪£¥#°]?"
HEBREW_RUN = re.compile(rf"[#$€₪£¥]?{NUMBER}{SIGNS}|{WORDS}")
ARABIC_RUN = re.compile(rf"{NUMBER}|{WORDS}")
MARK = re.compile("[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc]")
ALIKE = re.compile(rf"(?P<bracket>[()])(?P<words>[^(){LETTER}]+)(?P=bracket)")  # around words from the left
ONE_ROW = 0.9  # of the middle letters' height: how far letters of one row may be off it
BROKEN = 3  # letters a line, at most
CLOSE = 0.35  # in the same measure: no space is as narrow
COVERED = 0.1  # share of a line's letters that may stand on others


def in_logical_order(
    text: str, origin: Sequence[int] | None, characters: Characters
) -> tuple[str, Sequence[int] | None]:
    """`text` and `origin` (of each character its index in `characters`, None: the same) with such lines set right."""
    if not RIGHT_TO_LEFT.search(text):
        return text, origin
    places = range(len(text)) if origin is None else origin
    page_is, pieces, order = right_to_left(text), [], []
    done = 0
    for match in LINE.finditer(text):
        line = _Line(match[0], [places[index] for index in range(*match.span())], characters)
        here = line.logical() if line.turns(page_is) else range(len(match[0]))
        pieces += [text[done : match.start()], line.written(here)]
        order += [*range(done, match.start()), *(match.start() + index for index in here)]
        done = match.end()
    order += range(done, len(text))
    return "".join([*pieces, text[done:]]), [places[index] for index in order]


def rows_rejoined(characters: Characters) -> tuple[str, list[int]] | None:
    """The page's rows where PDFium broke them letter by letter: it takes a page with only a line or two of Hebrew for
    one that is written downwards. None for other pages."""
    text = characters.text
    if characters.turn or not right_to_left(text):
        return None
    letters = [index for index, letter in enumerate(text) if not letter.isspace()]
    if BROKEN * text.count("\n") < len(letters):
        return None
    rows: dict[int, list[int]] = {}
    for index in letters:
        rows.setdefault(round(characters.origin(index)[1]), []).append(index)
    near = CLOSE * median(characters.box(index).height for index in letters)
    parts = [_spaced_row(characters, rows[level], near) for level in sorted(rows, reverse=True)]
    return "\n".join(part for part, _ in parts), [index for _, origin in parts for index in origin][:-1]


def _spaced_row(characters: Characters, row: list[int], near: float) -> tuple[str, list[int]]:
    """From left to right, with a place for the line's end."""
    row.sort(key=lambda index: characters.box(index).left)
    text, origin = "", []
    for one, other in pairwise([*row, row[-1]]):
        gap = " " if characters.box(other).left - characters.box(one).right > near else ""
        text += characters.text[one] + gap
        origin += [one] * (1 + len(gap))
    return text, [*origin, row[-1]]


class _Line:
    """One line as PDFium has it; `places` are PDFium's indices."""

    def __init__(self, text: str, places: Sequence[int], characters: Characters) -> None:
        self.text = text
        self._places = places
        self._characters = characters
        self._boxes: list[Box] = []
        self._height = 0.0  # of most letters

    def turns(self, page_is: bool) -> bool:
        """It is read from the right, and what stands where can be told."""
        if not RIGHT_TO_LEFT.search(self.text) or not (right_to_left(self.text) or (page_is and not self._is_framed())):
            return False
        self._boxes = [self._characters.box(place) for place in self._places]
        return self._is_a_row()

    def _is_framed(self) -> bool:
        """It begins and ends with a word from the left: more likely a line of that kind with one of the other in it."""
        letters = [letter for letter in self.text if letter.isalpha()]
        return not any(RIGHT_TO_LEFT.match(letter) for letter in [*letters[:1], *letters[-1:]])

    def logical(self) -> list[int]:
        """Its characters as they are read."""
        marks = [n for n, letter in enumerate(self.text) if MARK.match(letter)]
        beside = {n for mark in marks for n in (mark - 1, mark + 1) if self.text[n : n + 1] == " "}
        others = (n for n in range(len(self.text)) if n not in beside and n not in marks)
        row = self._spaced(sorted(others, key=self._stand), beside)
        return list(self._with_marks(self._from_the_right(row), marks))

    def written(self, order: Sequence[int]) -> str:
        """Of two brackets that look alike the first opens: PDFium mirrors only those that it turned round."""
        text = "".join(self.text[index] for index in order)
        return ALIKE.sub(r"(\g<words>)", text) if text.count("(") != text.count(")") else text

    def _is_a_row(self) -> bool:
        shown = [box for box, letter in zip(self._boxes, self.text, strict=True) if letter.isalnum()]
        if not shown or all(MARK.match(letter) or letter.isspace() for letter in self.text):
            return False
        self._height = median(box.height for box in shown)
        level = median(box.bottom for box in shown)
        if any(abs(box.bottom - level) > ONE_ROW * self._height for box in shown):
            return False
        ordered = sorted(shown, key=lambda box: box.left)
        covered = sum(1 for one, other in pairwise(ordered) if other.right <= one.right)
        return covered <= COVERED * len(shown)

    def _stand(self, index: int) -> tuple[float, int]:
        """Letters of one shape, as lam and alef, stay in PDFium's order: it has them as they are read."""
        return self._middle(index), -index if RIGHT_TO_LEFT.match(self.text[index]) else index

    def _middle(self, index: int) -> float:
        return (self._boxes[index].left + self._boxes[index].right) / 2

    def _from_the_right(self, visual: Sequence[int]) -> list[int]:
        """Characters from left to right, as they are read."""
        shown = "".join(self.text[index] for index in visual)
        runs = ARABIC_RUN if ARABIC.search(shown) else HEBREW_RUN
        order: list[int] = []
        end = len(shown)
        for run in reversed(list(runs.finditer(shown))):
            order += [*visual[run.end() : end][::-1], *visual[run.start() : run.end()]]
            end = run.start()
        return [*order, *visual[:end][::-1]]

    def _spaced(self, row: Sequence[int], spaces: Collection[int]) -> list[int]:
        """The row with those of `spaces` for which there is room nearby."""
        room: dict[int, int] = {}
        for space in spaces:
            gaps = [at for at in range(1, len(row)) if at not in room and self._has_room(row[at - 1], row[at], space)]
            if gaps:
                room[min(gaps, key=lambda at: abs(self._middle(space) - self._boxes[row[at]].left))] = space
        return [index for at, letter in enumerate(row) for index in ((room[at], letter) if at in room else (letter,))]

    def _has_room(self, one: int, other: int, space: int) -> bool:
        start, end, at = self._boxes[one].right, self._boxes[other].left, self._middle(space)
        near = start - self._height < at < end + self._height
        return near and end - start > CLOSE * self._height and " " not in (self.text[one], self.text[other])

    def _with_marks(self, order: list[int], marks: Sequence[int]) -> Iterator[int]:
        """Every mark behind the letter it stands at."""
        letters = [n for n in order if RIGHT_TO_LEFT.match(self.text[n])] or order[-1:]
        of_letter: dict[int, list[int]] = {}
        for mark in marks:
            middle = self._middle(mark)
            at = min(letters, key=lambda n: max(self._boxes[n].left - middle, middle - self._boxes[n].right, 0.0))
            of_letter.setdefault(at, []).append(mark)
        for index in order:
            yield index
            if index in of_letter:
                yield from sorted(of_letter[index], key=lambda mark: unicodedata.combining(self.text[mark]))
