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
THAI_BYTE = re.compile("[\xa1-\xfb]")
IN_PLACE_SHARE = 0.93
THAI = {code: code + 0xD60 for code in (*range(0xA1, 0xDB), *range(0xDF, 0xFC))} | {
    # As Thai TeX fonts place them; seen in words that leave no choice.
    0x81: 0x0E34, 0x82: 0x0E35, 0x87: 0x0E49, 0x88: 0x0E48, 0x02C6: 0x0E48, 0x89: 0x0E49, 0x2030: 0x0E49, 0x8B: 0x0E48,
    0x8C: 0x0E49, 0x8D: 0x0E4A, 0x8F: 0x0E4C, 0x0152: 0x0E4C, 0x98: 0x0E31, 0x9A: 0x0E47,
}  # fmt: skip
SMALL_SHARE = 0.35
LEAST_LETTERS = 60
SIGNS = frozenset("[\\]^_`{|}~@<>#$&*") | set(map(chr, range(1, 10))) | set(map(chr, range(14, 32)))
THAI_REASON = "Its old Thai font encoding was turned into letters."
SHIFT_REASON = "Its font says letters moved by a constant; they were moved back."


def spells_nothing(text: str) -> bool:
    """Most letters are large, or signs and control codes stand in their place, as where glyphs are numbered."""
    counts = Counter(text)
    small = sum(n for c, n in counts.items() if c.isalpha() and not c.isupper())
    other = sum(n for c, n in counts.items() if c.isupper() or c in SIGNS)
    return small + other >= LEAST_LETTERS and small < SMALL_SHARE * (small + other)


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
    if len(THAI_BYTE.findall(text)) < 3 * LEAST_MARKS:
        return None
    read = text.translate(THAI)
    marks = len(MARK.findall(read))
    in_place = sum(1 for _ in re.finditer(f"(?={MARK_IN_PLACE.pattern})", read))
    return read if marks >= LEAST_MARKS and in_place >= IN_PLACE_SHARE * marks else None


def _moved(text: str, unmapped: Sequence[bool]) -> str | None:
    """None unless one shift turns codes that spell nothing into the common words of a language."""
    lost = "".join(c if is_lost else " " for c, is_lost in zip(text, unmapped, strict=True))
    codes = Counter(c for c in lost if c not in " \r\n").most_common(FREQUENT)
    shifts = {ord(goal) - ord(code) for code, _ in codes for goal in " e"} - {0}
    shift = max(shifts, key=lambda by: _share_of_common(_shifted(lost, by)), default=0)
    if _share_of_common(lost) > REFUTED_SHARE or _share_of_common(_shifted(lost, shift)) < PROVED_SHARE:
        return None
    return "".join(_shifted(c, shift) if is_lost else c for c, is_lost in zip(text, unmapped, strict=True))


def _shifted(text: str, shift: int) -> str:
    return text.translate({n: n + shift for n in range(0x250) if chr(n) not in " \r\n" and 0x20 <= n + shift < 0x250})


def _share_of_common(text: str) -> float:
    words = WORD.findall(text.lower())
    return sum(word in STOP_WORDS for word in words) / len(words) if len(words) >= LEAST_WORDS else 0.0
