"""Letters that no font of this system shows: boxes stand for them, which is told once, with what to install."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtGui import QFontMetrics, QGuiApplication

from app.widgets.toast import Toasts

ALWAYS_THERE = 0x250  # letters in front of it are in every font
EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")


def has_glyph(letter: str) -> bool:
    """In the application's font or in one that stands in for it."""
    return QFontMetrics(QGuiApplication.font()).inFontUcs4(ord(letter))


def scripts_of(letters: Iterable[str]) -> tuple[str, ...]:
    """Names of the scripts that the letters belong to, sorted."""
    names = (unicodedata.name(letter, "").partition(" ")[0].partition("-")[0] for letter in letters)
    return tuple(sorted(set(names) - {""}))


def missing_words(scripts: Sequence[str]) -> str:
    east = ["Chinese, Japanese or Korean"] if any(script in EAST_ASIAN for script in scripts) else []
    named = [*east, *(script.capitalize() for script in scripts if script not in EAST_ASIAN)]
    return (
        f"This system has no font for some {', '.join(named)} letters; boxes stand for them. "
        f"Install one (Debian, Ubuntu: {command(scripts)}) and start Pagekeep again."
    )


def command(scripts: Sequence[str]) -> str:
    """What installs fonts for them."""
    east = [script in EAST_ASIAN for script in scripts]
    packages = [*(["fonts-noto-cjk"] if any(east) else []), *(["fonts-noto-core"] if not all(east) else [])]
    return f"sudo apt install {' '.join(packages)}"


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
        scripts = scripts_of(letter for letter in letters if not self._shows(letter))
        if scripts:
            self._told = True
            copy = partial(QGuiApplication.clipboard().setText, command(scripts))
            self._toasts.say(missing_words(scripts), "Copy command", copy, keep=True)
