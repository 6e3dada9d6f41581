"""Page text as people read it, with the way back to PDFium's character indices."""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

LINE_END_HYPHENS = "\ufffe\x02"  # what FPDFText_GetText and FPDFText_GetUnicode give for a hyphen at a line end
SPECIAL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\u00a0\u00ad\ud800-\udfff\ufffe"
    "\ufb00-\ufdff\ufe70-\ufefc]"  # Latin, Armenian, Hebrew ligatures, Arabic presentation forms
)


@dataclass(frozen=True)
class CharMap:
    """For every character of a cleaned text the index of the PDFium character it came from.

    Kept as the points where the correspondence is not "one further on both sides": `clean[k]` and `raw[k]`
    begin the k-th run.
    """

    clean: tuple[int, ...]
    raw: tuple[int, ...]

    def index(self, clean_index: int) -> int:
        run = bisect_right(self.clean, clean_index) - 1
        return self.raw[run] + clean_index - self.clean[run]

    def span(self, start: int, count: int) -> tuple[int, int]:
        """PDFium (first character, count) of `count` > 0 cleaned characters from `start`."""
        first = self.index(start)
        return first, self.index(start + count - 1) + 1 - first

    def spans(self, start: int, count: int) -> list[tuple[int, int]]:
        """The same as runs of PDFium characters in reading order: more than one where the page was put in order."""
        if self._ascends:
            return [self.span(start, count)]
        first = bisect_right(self.clean, start) - 1
        last = bisect_right(self.clean, start + count - 1)
        found: list[tuple[int, int]] = []
        for run in range(first, last):
            begin = max(start, self.clean[run])
            end = min(start + count, self.clean[run + 1]) if run + 1 < len(self.clean) else start + count
            at = self.raw[run] + begin - self.clean[run]
            if found and self._joins(found[-1][1], at):
                found[-1] = (found[-1][0], max(found[-1][1], at + end - begin))
            else:
                found.append((at, at + end - begin))
        return [(begin, end - begin) for begin, end in found]

    @cached_property
    def _ascends(self) -> bool:
        return all(one <= other for one, other in pairwise(self.raw))

    def _joins(self, end: int, at: int) -> bool:
        """Only characters that were left out (line ends, hyphens) stand between `end` and `at`."""
        if at <= end:
            return end - at <= 1
        return not any(end <= raw < at for raw in self.raw)

    def pack(self) -> bytes:
        """Runs as little-endian u32: count, then clean starts, then raw starts; deflated."""
        n = len(self.clean)
        return zlib.compress(struct.pack(f"<{1 + 2 * n}I", n, *self.clean, *self.raw), 1)

    @staticmethod
    def unpack(data: bytes) -> CharMap:
        values = memoryview(zlib.decompress(data)).cast("I")
        n = values[0]
        return CharMap(tuple(values[1 : 1 + n]), tuple(values[1 + n : 1 + 2 * n]))


def clean(raw: str, places: Sequence[int] | None = None) -> tuple[str, CharMap]:
    """Text of a page for search, prompt and display, and its map.

    `raw` holds one character per PDFium index; `places` says which where the page was put in order. Words broken at
    line ends are joined (PDFium marks the place with U+FFFE), ligatures and presentation forms expanded (NFKC), soft
    hyphens and NULs left out, line ends made "\\n". A hyphen stays where what follows shows a true one: a capital or a
    digit.
    """
    pieces: list[str] = []
    runs: list[tuple[int, int]] = []
    length = done = 0
    for match in SPECIAL.finditer(raw):
        at = match.start()
        for piece, origin in ((raw[done:at], done), *((c, at) for c in _replacement(raw, at))):
            if piece:
                _add_run(runs, length, origin)
                pieces.append(piece)
                length += len(piece)
        done = at + 1
    if done < len(raw):
        _add_run(runs, length, done)
        pieces.append(raw[done:])
    if places is not None:
        runs = _moved(runs, length + len(raw) - done, places)
    return "".join(pieces), CharMap(tuple(c for c, _ in runs), tuple(r for _, r in runs))


def _moved(runs: Sequence[tuple[int, int]], length: int, places: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of a text of `length` characters, their places led back to PDFium's."""
    made: list[tuple[int, int]] = []
    for (start, raw), (end, _) in pairwise([*runs, (length, 0)]):
        for index in range(start, end):
            _add_run(made, index, places[raw + index - start])
    return made


def _add_run(runs: list[tuple[int, int]], clean_index: int, raw_index: int) -> None:
    """Begins a run unless the last one goes on to this place."""
    if not runs or runs[-1][1] - runs[-1][0] != raw_index - clean_index:
        runs.append((clean_index, raw_index))


def _replacement(raw: str, index: int) -> str:
    character = raw[index]
    following = raw[index + 1 : index + 2]
    if "\ud800" <= character <= "\udbff" and "\udc00" <= following <= "\udfff":
        return (character + following).encode("utf-16", "surrogatepass").decode("utf-16")
    if character in LINE_END_HYPHENS:
        return "-" if following.isupper() or following.isdigit() else ""
    if character == "\r":
        return "" if following == "\n" else "\n"
    if character == "\u00a0":
        return " "
    return unicodedata.normalize("NFKC", character) if character >= "\ufb00" else ""
