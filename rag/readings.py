"""The ways a written number can be read: separators of thousands and decimals, times, dates, "million".

A reading is digits with at most one point ("1024", "3.5"), or parts with colons ("14:30") or points ("7.4.2024").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from rag.spelled import SCALES, spelled

GAPS = " \u00a0\u2009\u202f"
NO_SPACE = re.compile(rf"[^{GAPS}]+")
NUMBERS = re.compile(rf"\d+(?:[.,:/x×'’–-]\d+|[{GAPS}]\d{{3}}(?!\d))*")
DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
ATOM = re.compile(r"\d+(?:[.,'’:]\d+)*")
SCALE = re.compile(rf"[\s-]*({'|'.join(SCALES)})\b", re.IGNORECASE)
CLOCK = re.compile(r"(?<![\d.,:])(\d{1,2})[.:]?(\d{2})?\s?(?:h|uhr|([ap])\.?m\b|o[’']clock)\s?(\d{2})?", re.IGNORECASE)
MONTHS = {
    name: str(month)
    for month, names in enumerate(
        (
            "january jan januar janvier enero",
            "february feb februar février febrero",
            "march mar märz mars marzo",
            "april apr avril abril",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio",
            "august aug août agosto",
            "september sep sept septembre septiembre",
            "october oct oktober okt octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember dez décembre diciembre",
        ),
        1,
    )
    for name in names.split()
}
WORD = re.compile(r"[^\W\d_]+")
MOST_GROUPS = 5


def told_readings(text: str) -> Iterator[str]:
    """All that a text tells: its numbers, their parts ("2024-04-07": 2024, 4, 7), number words, months, times."""
    yield from (number for number in spelled(text) if len(number) > 1)  # "two" and its like stand in any text
    yield from (MONTHS[word] for word in set(map(str.lower, WORD.findall(text))) & MONTHS.keys())
    for match in CLOCK.finditer(text):
        hour, minute = int(match[1]), match[2] or match[4] or "00"
        yield from (*_times(hour, int(minute)), str(hour))
        if match[3] and match[3] in "pP":
            yield str(hour % 12 + 12)
    for match in NUMBERS.finditer(text):
        yield from _told(match[0])
        yield from scaled(ATOM.findall(match[0])[-1], text[match.end() : match.end() + 16])


def _told(number: str) -> Iterator[str]:
    for atom in ATOM.findall(number):
        yield from readings(atom)
        if not _thousands(re.split(r"[.,'’]", atom)):
            yield from map(_plain, re.findall(r"\d+", atom))
    groups = re.split(rf"[{GAPS}]", number)
    for first in range(len(groups) - 1):
        for last in range(first + 2, min(len(groups), first + MOST_GROUPS) + 1):
            yield from readings(" ".join(groups[first:last]))


def readings(number: str) -> Iterator[str]:
    """Of one number that may have separators: "1.234,5" is 1234.5, "10.000" is 10000, "14:30" is also 2:30."""
    parts = re.split(rf"[.,:'’{GAPS}]", number)
    marks = re.findall(rf"[.,:'’{GAPS}]", number)
    if ":" in marks:
        yield ":".join(map(_plain, parts))
        if len(parts) in (2, 3) and len(parts[0]) <= 2 and len(parts[1]) == 2:
            yield from _times(int(parts[0]), int(parts[1]))
        return
    if not marks:
        yield _plain(number)
        return
    if _thousands(parts):
        yield _plain("".join(parts))
    last = marks[-1]
    if last in ".," and marks.count(last) == 1 and parts[-1] != "000":
        yield f"{_plain(''.join(parts[:-1]))}.{parts[-1]}"
    if set(marks) <= {".", ","}:
        yield from [".".join(map(_plain, parts))] if len(parts) > 2 else ()
    if marks == ["."] and len(parts[0]) <= 2 and len(parts[1]) == 2 and int(parts[0]) < 24:
        yield f"{_plain(parts[0])}:{_plain(parts[1])}"


def date_parts(number: str) -> tuple[str, ...]:
    """Day, month and year of "07.04.2024"; () of all else."""
    found = DATE.fullmatch(number)
    return tuple(map(_plain, found.groups())) if found else ()


def scaled(number: str, behind: str) -> Iterator[str]:
    """The same where a word like "million" follows."""
    if match := SCALE.match(behind):
        for reading in readings(number):
            if ":" not in reading and reading.count(".") < 2:
                yield f"{Decimal(reading) * SCALES[match[1].lower()]:f}"


def shortest(reading: str) -> str:
    """Without zeros at the end of a decimal."""
    return reading.rstrip("0").rstrip(".") if reading.count(".") == 1 and ":" not in reading else reading


def _times(hour: int, minute: int) -> Iterator[str]:
    """On a clock of 24 hours and one of 12."""
    if hour <= 24 and minute < 60:
        yield from (f"{h}:{minute}" for h in (hour % 12, hour % 12 + 12, hour))
        if hour == 24:
            yield f"0:{minute}"


def _thousands(parts: list[str]) -> bool:
    """Groups of three digits, or as in India of two before the last."""
    return (
        len(parts) > 1
        and 1 <= len(parts[0]) <= 3
        and len(parts[-1]) == 3
        and all(len(part) in (2, 3) for part in parts[1:])
    )


def _plain(digits: str) -> str:
    return digits.lstrip("0") or "0"
