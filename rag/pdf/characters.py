"""The characters of a page as PDFium numbers them, and where each stands."""

from __future__ import annotations

import ctypes
import re
from ctypes import PYFUNCTYPE, c_double, c_int, c_uint, c_void_p
from types import TracebackType
from typing import Any, NamedTuple, Self

import pypdfium2 as pdfium
import pypdfium2.raw as raw

PROBES = 8
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


class Box(NamedTuple):
    """Edges in points, y upwards."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom


def _quick(function: Any, result: Any, *arguments: Any) -> Any:
    """A foreign function called without the conversions of ctypes: half the time, and it is called per character."""
    return PYFUNCTYPE(result, *arguments)(ctypes.cast(function, c_void_p).value or 0)


_unicode = _quick(raw.FPDFText_GetUnicode, c_uint, c_void_p, c_int)
_box = _quick(raw.FPDFText_GetCharBox, c_int, c_void_p, c_int, *[c_void_p] * 4)
_origin = _quick(raw.FPDFText_GetCharOrigin, c_int, c_void_p, c_int, c_void_p, c_void_p)
_generated = _quick(raw.FPDFText_IsGenerated, c_int, c_void_p, c_int)
_map_error = _quick(raw.FPDFText_HasUnicodeMapError, c_int, c_void_p, c_int)
_rectangle = _quick(raw.FPDFText_GetRect, c_int, c_void_p, c_int, *[c_void_p] * 4)


class Characters:
    """One page's text page, open until the `with` block ends.

    Attributes:
        text: one character per PDFium character index.
        turn: quarter turns of the letters, counter-clockwise; boxes are given as if there were none.
    """

    def __init__(self, page: pdfium.PdfPage) -> None:
        self.turn = 0
        self._textpage = page.get_textpage()
        self._handle = ctypes.cast(self._textpage.raw, c_void_p).value
        self._numbers = (c_double * 4)()
        self._at = [ctypes.addressof(self._numbers) + 8 * n for n in range(4)]
        self._room = raw.FS_RECTF()
        count = self._textpage.count_chars()
        quick = self._all_at_once(count)
        self.text: str = self._one_by_one(count) if quick is None else quick

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._textpage.close()

    def box(self, index: int) -> Box:
        """Of the visible shape; without area for characters that PDFium added and for spaces."""
        left, right, bottom, top = self._at
        _box(self._handle, index, left, right, bottom, top)
        x, to_x, y, to_y = self._numbers
        return self._upright(Box(x, y, to_x, to_y))

    def _upright(self, box: Box) -> Box:
        for _ in range(self.turn):
            box = Box(box.bottom, -box.right, box.top, -box.left)
        return box

    def advance(self, index: int) -> Box:
        """The room the character takes in its line, with the white at its sides."""
        raw.FPDFText_GetLooseCharBox(self._textpage, index, self._room)
        room = self._room
        return self._upright(Box(room.left, room.bottom, room.right, room.top))

    def origin(self, index: int) -> tuple[float, float]:
        """Where the character's baseline begins on the page."""
        _origin(self._handle, index, self._at[0], self._at[1])
        return self._numbers[0], self._numbers[1]

    def is_generated(self, index: int) -> bool:
        """PDFium added it: it is a space or a line end that the file does not have."""
        return bool(_generated(self._handle, index) == 1)

    def angle(self, index: int) -> float:
        """Which way the character is turned, in radians from 0 to 2 pi."""
        return float(raw.FPDFText_GetCharAngle(self._textpage, index))

    def lacks_maps(self) -> bool:
        """Some probed character's font does not say which letter it is."""
        step = max(1, len(self.text) // (2 * PROBES))
        return any(_map_error(self._handle, index) == 1 for index in range(0, len(self.text), step))

    def unmapped(self) -> list[bool]:
        """Of each character, whether its font does not say which letter it is."""
        return [_map_error(self._handle, index) == 1 for index in range(len(self.text))]

    def lost_codes(self) -> list[int]:
        """Places of control codes that stand for a letter, which their font does not say."""
        found = (match.start() for match in CONTROL.finditer(self.text))
        return [index for index in found if self.text[index] == "\x00" or _map_error(self._handle, index) == 1]

    def runs(self) -> list[Box]:
        """Boxes of the runs of text as the file draws them, in its order."""
        left, top, right, bottom = self._at
        made = []
        for number in range(raw.FPDFText_CountRects(self._textpage, 0, -1)):
            _rectangle(self._handle, number, left, top, right, bottom)
            x, to_y, to_x, y = self._numbers
            made.append(self._upright(Box(x, y, to_x, to_y)))
        return made

    def _one_by_one(self, count: int) -> str:
        return "".join([chr(_unicode(self._handle, index)) for index in range(count)])

    def _all_at_once(self, count: int) -> str | None:
        """FPDFText_GetText is 20 times as fast, but it works on another list, which may leave characters out or
        have more. None where it differs in length or at a probed place."""
        buffer = (ctypes.c_ushort * (count + 1))()
        if raw.FPDFText_GetText(self._textpage, 0, count, buffer) - 1 != count:
            return None
        text = bytes(buffer)[: 2 * count].decode("utf-16-le", "replace")
        return text if len(text) == count and self._probes_agree(text) else None

    def _probes_agree(self, text: str) -> bool:
        for index in range(0, len(text), max(1, len(text) // PROBES)):
            unicode = _unicode(self._handle, index)
            if unicode != ord(text[index]) and not (unicode == 0x02 and text[index] == "\ufffe"):
                return False
        return True
