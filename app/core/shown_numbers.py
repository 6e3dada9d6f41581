"""Numbers of citations as the reader sees them: [1], [2], ... in the order of appearance in that answer.

The model names passages by their number in the whole conversation; those stay in links and tool tips.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from app.core.records import StoredCitation

BRACKETS = re.compile(r"\[(\d{1,4})\](?!\()")
GROUPS = re.compile(r"\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\](?!\()")


def shown_numbers(text: str, citations: Sequence[StoredCitation]) -> dict[int, int]:
    """Passage number to shown number."""
    places: dict[int, int] = {}
    for citation in citations:
        written = text.find(f"[{citation.marker}]")
        place = written if written >= 0 else citation.answer_start + citation.answer_count
        places[citation.marker] = min(place, places.get(citation.marker, place))
    ordered = sorted(places, key=lambda marker: (places[marker], marker))
    return {marker: number for number, marker in enumerate(ordered, start=1)}


def printed_numbers(text: str, citations: Sequence[StoredCitation]) -> dict[int, int]:
    """Shown numbers where `text` is printed already: what the model wrote in it stays, the rest gets what is free."""
    written = {int(number) for group in GROUPS.findall(text) for number in re.split(r"[,;]", group)}
    free = (number for number in count(1) if number not in written)
    return {marker: marker if marker in written else next(free) for marker in shown_numbers(text, citations)}


def as_numbers(markers: Iterable[int] | Mapping[int, int]) -> dict[int, int]:
    """Markers without other numbers are shown as they are."""
    return dict(markers) if isinstance(markers, Mapping) else {marker: marker for marker in markers}


def renumbered(text: str, citations: Sequence[StoredCitation]) -> str:
    """`text` as it is copied, exported and read out: with the shown numbers."""
    numbers = shown_numbers(text, citations)
    return BRACKETS.sub(lambda found: f"[{numbers.get(int(found[1]), found[1])}]", text)
