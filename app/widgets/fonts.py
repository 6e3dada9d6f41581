"""Letters that no font of this system shows: boxes stand for them, which is told once, with what to install."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject
from PySide6.QtGui import QFontMetrics, QGuiApplication

from app.widgets.toast import Toasts

ALWAYS_THERE = 0x250  # letters in front of it are in every font
EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")


def has_glyph(letter: str) -> bool:
    """In the application's font or in one that stands in for it."""
    return QFontMetrics(QGuiApplication.font()).inFontUcs4(ord(letter))


def missing_words(letters: Iterable[str]) -> str:
    """What is missing and how it is got; "" where nothing is. Letters are named by their script."""
    scripts = sorted({unicodedata.name(letter, "").partition(" ")[0].partition("-")[0] for letter in letters} - {""})
    if not scripts:
        return ""
    east, others = ([script for script in scripts if (script in EAST_ASIAN) == wanted] for wanted in (True, False))
    named = [*(["Chinese, Japanese or Korean"] if east else []), *(script.capitalize() for script in others)]
    packages = [*(["fonts-noto-cjk"] if east else []), *(["fonts-noto-core"] if others else [])]
    return (
        f"This system has no font for some {', '.join(named)} letters; boxes stand for them. "
        f"Install one (Debian, Ubuntu: apt install {' '.join(packages)}) and start Pagekeep again."
    )


class MissingFonts(QObject):
    """Looks at names and texts as they come."""

    def __init__(self, toasts: Toasts, shows: Callable[[str], bool] | None = None) -> None:
        super().__init__(toasts)
        self._toasts = toasts
        self._shows = shows or has_glyph
        self._seen: set[str] = set()
        self._told = False

    def look(self, texts: Iterable[str]) -> None:
        """Each letter is asked for once."""
        if self._told:
            return
        found = set().union(*texts) - self._seen
        self._seen |= found
        letters = {letter for letter in found if ord(letter) >= ALWAYS_THERE and letter.isalpha()}
        if said := missing_words(letter for letter in letters if not self._shows(letter)):
            self._told = True
            self._toasts.say(said)
