"""Letters that a font's codes hide, found again where it can be proved what the codes stand for.

Two kinds are known: fonts without a Unicode map whose codes are the letters' moved by a constant (subsets numbered by
glyph), and Thai in its 8-bit encoding (TIS-620 with the raised and lowered marks of Thai TeX fonts), read as Latin-1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rag.stop_words import STOP_WORDS

WORD = re.compile(r"[a-zà-ÿ]+", re.IGNORECASE)
FREQUENT = 4  # most frequent codes, one of which is the space or the letter e
LEAST_WORDS = 15
PROVED_SHARE = 0.25  # of the words are among the commonest of their language
REFUTED_SHARE = 0.1
THAI_MARK = "\u0e31\u0e33-\u0e3a\u0e47-\u0e4e"
MARK = re.compile(f"[{THAI_MARK}]")
MARK_IN_PLACE = re.compile(f"[\u0e01-\u0e2e{THAI_MARK}][{THAI_MARK}]")
LEAST_MARKS = 12
IN_PLACE_SHARE = 0.93
THAI = {code: code + 0xD60 for code in (*range(0xA1, 0xDB), *range(0xDF, 0xFC))} | {
    # As Thai TeX fonts place them; seen in words that leave no choice.
    0x81: 0x0E34, 0x82: 0x0E35, 0x87: 0x0E49, 0x88: 0x0E48, 0x02C6: 0x0E48, 0x89: 0x0E49, 0x2030: 0x0E49, 0x8B: 0x0E48,
    0x8C: 0x0E49, 0x8D: 0x0E4A, 0x8F: 0x0E4C, 0x0152: 0x0E4C, 0x98: 0x0E31, 0x9A: 0x0E47,
}  # fmt: skip
THAI_REASON = "Its old Thai font encoding was turned into letters."
SHIFT_REASON = "Its font says letters moved by a constant; they were moved back."


def restored(text: str, unmapped: Sequence[bool] | None) -> tuple[str, str]:
    """The text, letter for letter, and what was done; unchanged and "" when nothing can be proved.

    Args:
        unmapped: of each character, whether its font lacks a Unicode map; None when there is none such.
    """
    if not text.isascii() and (thai := _thai(text)) is not None:
        return thai, THAI_REASON
    if unmapped is not None and (moved := _moved(text, unmapped)) is not None:
        return moved, SHIFT_REASON
    return text, ""


def _thai(text: str) -> str | None:
    """None unless the marks above and below letters all stand behind a letter that can bear them."""
    if sum("\xa1" <= c <= "\xfb" for c in text) < 3 * LEAST_MARKS:
        return None
    read = text.translate(THAI)
    marks = len(MARK.findall(read))
    in_place = sum(1 for _ in re.finditer(f"(?={MARK_IN_PLACE.pattern})", read))
    return read if marks >= LEAST_MARKS and in_place >= IN_PLACE_SHARE * marks else None


def _moved(text: str, unmapped: Sequence[bool]) -> str | None:
    """None unless one shift turns codes that spell nothing into the common words of a language."""
    codes = Counter(c for c, lost in zip(text, unmapped, strict=True) if lost and c not in " \r\n")
    if _share_of_common(text) > REFUTED_SHARE:
        return None
    shifts = [ord(goal) - ord(code) for code, _ in codes.most_common(FREQUENT) for goal in " e"]
    read = [_shifted(text, unmapped, shift) for shift in shifts if shift]
    return max((r for r in read if _share_of_common(r) >= PROVED_SHARE), key=_share_of_common, default=None)


def _shifted(text: str, unmapped: Sequence[bool], shift: int) -> str:
    def read(letter: str, lost: bool) -> str:
        code = ord(letter) + shift
        return chr(code) if lost and letter not in " \r\n" and " " <= chr(max(0, code)) <= "\u024f" else letter

    return "".join(read(letter, lost) for letter, lost in zip(text, unmapped, strict=True))


def _share_of_common(text: str) -> float:
    words = WORD.findall(text.lower())
    return sum(word in STOP_WORDS for word in words) / len(words) if len(words) >= LEAST_WORDS else 0.0
