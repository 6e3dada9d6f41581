"""Page text as people read it, with the way back to PDFium's character indices."""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from bisect import bisect_right
from dataclasses import dataclass

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

    def pack(self) -> bytes:
        """Runs as little-endian u32: count, then clean starts, then raw starts; deflated."""
        n = len(self.clean)
        return zlib.compress(struct.pack(f"<{1 + 2 * n}I", n, *self.clean, *self.raw), 1)

    @staticmethod
    def unpack(data: bytes) -> CharMap:
        values = memoryview(zlib.decompress(data)).cast("I")
        n = values[0]
        return CharMap(tuple(values[1 : 1 + n]), tuple(values[1 + n : 1 + 2 * n]))


def clean(raw: str) -> tuple[str, CharMap]:
    """Text of a page for search, prompt and display, and its map.

    `raw` holds one character per PDFium index. Words broken at line ends are joined (PDFium marks the place with
    U+FFFE), ligatures and presentation forms expanded (NFKC), soft hyphens and NULs left out, line ends
    made "\\n". A hyphen stays where what follows shows a true one: a capital or a digit.
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
    return "".join(pieces), CharMap(tuple(c for c, _ in runs), tuple(r for _, r in runs))


def _add_run(runs: list[tuple[int, int]], clean_index: int, raw_index: int) -> None:
    """Begins a run unless the last one goes on to this place."""
    if not runs or runs[-1][1] - runs[-1][0] != raw_index - clean_index:
        runs.append((clean_index, raw_index))


def _replacement(raw: str, index: int) -> str:
    character = raw[index]
    following = raw[index + 1 : index + 2]
    if character in LINE_END_HYPHENS:
        return "-" if following.isupper() or following.isdigit() else ""
    if character == "\r":
        return "" if following == "\n" else "\n"
    if character == "\u00a0":
        return " "
    return unicodedata.normalize("NFKC", character) if character >= "\ufb00" else ""
