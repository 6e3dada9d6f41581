"""Instructions that stay what they are: a clock or a random id in them would change the prompt, and with it cost what
was kept of everything behind it."""

from __future__ import annotations

import re

from app.core.errors import UserError

_NAMES = (
    r"(?:current[ _-]?)?(?:date|time|datetime|now|today|timestamp|uuid|guid|random|nonce|(?:session|request)[ _-]?id)"
)
_TIME = r"(?:(?:[01]?\d|2[0-3])[:.h][0-5]\d(?::[0-5]\d)?(?:\s*[ap]\.?m\b)?|1?\d\s*[ap]\.?m\b|1?\d o'clock)"
_DATE = r"(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_NOW = r"(?:now|currently|at the moment|jetzt|gerade|maintenant)"
# A clock time or a date that claims to be now; opening hours, meetings, dates of documents do not.
_CLAIMS = (
    rf"\b(?:it is|it's|the time is|es ist|il est)(?: (?:{_NOW}|exactly|about|just))? {_TIME}",
    rf"\b{_NOW}(?: it is| it's|,? es ist)?[ :(=]{{1,3}}(?:{_TIME}|{_DATE})",
    rf"\b{_TIME}(?: Uhr)? (?:right )?{_NOW}\b",
)
_CLOCKS = (
    *(re.compile(claim, re.IGNORECASE) for claim in _CLAIMS),
    re.compile(rf"\{{+\s*{_NAMES}\b[^}}\n]*\}}+|\$\{{?{_NAMES}\b\}}?|<{_NAMES}>|\$\(date\b[^)\n]*\)", re.IGNORECASE),
    re.compile(r"\bstrftime\w*\s*\([^)\n]*\)?|%[HIMS](?:[:.]%[MS])+"),
    re.compile(r"\b\d{4}-\d\d-\d\d[T ]+\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?"),
    re.compile(r"\b(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d\b"),
    re.compile(r"\b(?:today is|(?:current|today's) (?:date|time|day) (?:is|:))[^.\n]*\d[^.\n]*", re.IGNORECASE),
    re.compile(r"\bcurrent (?:date|time|day)(?: and (?:date|time))?:[^.\n]*\d[^.\n]*", re.IGNORECASE),
    re.compile(r"(?<![\d.,])1[5-9]\d{8}(?:\d{3})?(?![\d.,]\d|\d)"),  # seconds or milliseconds since 1970
)
_ISBN = re.compile(r"\bISBN(?:-1[03])?:?\s*[\dX][\dX -]{8,16}", re.IGNORECASE)
_IDS = (
    re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE),
    re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{16,}\b", re.IGNORECASE),
)


class Unsteady(UserError):
    """What looks like a clock or a random id; the reader may know better and keep it."""


def check_steady(instructions: str) -> None:
    """Raises Unsteady where the text holds a clock, a placeholder for one, or what looks like a random id. A plain
    date ("the contract of 2024-01-05") is none, nor is an ISBN."""
    plain = _ISBN.sub("", instructions)
    for what, patterns in (("a clock", _CLOCKS), ("a random id", _IDS)):
        found = next((match for pattern in patterns if (match := pattern.search(plain))), None)
        if found is not None:
            raise Unsteady(
                f"The instructions hold what looks like {what}.",
                f"“{found[0].strip()}” would be another text each time, and all behind it would be read again.",
                "Leave it out, and write what holds for the whole conversation; or keep it, if it never changes.",
            )
