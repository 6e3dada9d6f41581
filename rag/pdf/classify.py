"""What kind of page a page is, judged by its text and what is drawn on it."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from rag.types import MISSING_LETTERS, PageKind

FEW_CHARACTERS = 60  # a page number and a stamp; a scanner's added line has about 20
LITTLE_TEXT = 600  # below it a large picture may hold the page's real text
PICTURE_SHARE = 0.4
STROKES = 100  # of lines and curves; a page with a frame and some rules has fewer
GARBLED_SHARE = 0.2
OLD_FONT_SHARE = 0.4
UNMAPPED_SHARE = 0.5
LEAST_LOST, MANY_LOST = 3, 8
LOST_SHARE = 0.002
NO_LETTERS = "The fonts do not say which letters their shapes are."


@dataclass(frozen=True)
class Drawn:
    """What a page shows beside its text.

    Attributes:
        picture: part of the page's area under its largest picture, 0 to 1.
        strokes: lines and curves drawn.
    """

    picture: float = 0.0
    strokes: int = 0


def classify(text: str, drawn: Drawn, unmapped: float = 0.0, lost: int = 0) -> tuple[PageKind, str]:
    """Kind and reason.

    Args:
        unmapped: part of the letters that spell nothing and whose font does not say what they are.
        lost: letters that are left out of the text, because their font does not say what they are.
    """
    counts = {c: n for c, n in Counter(text).items() if not c.isspace()}
    visible = sum(counts.values())
    if lost >= MANY_LOST and lost > GARBLED_SHARE * (visible + lost):
        return "garbled", NO_LETTERS
    if visible < FEW_CHARACTERS and drawn.picture >= PICTURE_SHARE:
        return "scan", "The page is a picture without a text layer."
    if visible < FEW_CHARACTERS and drawn.strokes >= STROKES:
        return "drawing", "The page is a drawing; words in it may be drawn as well."
    if not visible:
        return "empty", "There is no text on the page."
    reason = NO_LETTERS if unmapped >= UNMAPPED_SHARE else garbled(counts)
    if reason:
        return "garbled", reason
    if visible < LITTLE_TEXT and drawn.picture >= PICTURE_SHARE:
        return "mixed", "Beside the text there is a large picture, which may hold more of it."
    return "text", missing_letters(lost, visible)


def missing_letters(lost: int, visible: int) -> str:
    """What to say of a page that can be read but for some letters; "" where too few are lost to break its words."""
    if lost < LEAST_LOST or lost < LOST_SHARE * visible:
        return ""
    return f"{lost:,} {MISSING_LETTERS}"


def garbled(counts: Mapping[str, int]) -> str:
    """Why the visible letters, given with their numbers, cannot be the page's words; empty when they can."""
    meaningless = sum(n for c, n in counts.items() if unicodedata.category(c) in ("Co", "Cn", "Cc") or c == "\ufffd")
    if meaningless > GARBLED_SHARE * sum(counts.values()):
        return NO_LETTERS
    letters = sum(n for c, n in counts.items() if c > "\x7f" or c.isalpha())
    upper_latin1 = sum(n for c, n in counts.items() if "\x80" <= c <= "\xff")
    if letters >= FEW_CHARACTERS and upper_latin1 > OLD_FONT_SHARE * letters:
        return "The letters come from an old font encoding and spell nothing."
    return ""
