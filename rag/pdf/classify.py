"""What kind of page a page is, judged by its text and the share of it that pictures cover."""

from __future__ import annotations

import unicodedata

from rag.types import PageKind

FEW_CHARACTERS = 60  # a page number and a stamp; a scanner's added line has about 20
LITTLE_TEXT = 600  # below it a large picture may hold the page's real text
PICTURE_SHARE = 0.4
GARBLED_SHARE = 0.2
OLD_FONT_SHARE = 0.4


def classify(text: str, picture_share: float) -> tuple[PageKind, str]:
    """Kind and reason. `picture_share`: part of the page area under its largest picture, 0 to 1."""
    visible = [c for c in text if not c.isspace()]
    if len(visible) < FEW_CHARACTERS and picture_share >= PICTURE_SHARE:
        return "scan", "The page is a picture without a text layer."
    if not visible:
        return "empty", "There is no text on the page."
    reason = garbled(visible)
    if reason:
        return "garbled", reason
    if len(visible) < LITTLE_TEXT and picture_share >= PICTURE_SHARE:
        return "mixed", "Beside the text there is a large picture, which may hold more of it."
    return "text", ""


def garbled(visible: list[str]) -> str:
    """Why the letters cannot be the page's words; empty when they can."""
    meaningless = sum(1 for c in visible if unicodedata.category(c) in ("Co", "Cn", "Cc") or c == "\ufffd")
    if meaningless > GARBLED_SHARE * len(visible):
        return "The fonts do not say which letters their shapes are."
    letters = [c for c in visible if c > "\x7f" or c.isalpha()]
    upper_latin1 = sum(1 for c in letters if "\x80" <= c <= "\xff")
    if len(letters) >= FEW_CHARACTERS and upper_latin1 > OLD_FONT_SHARE * len(letters):
        return "The letters come from an old font encoding and spell nothing."
    return ""
