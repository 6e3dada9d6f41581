"""Spaces that a file leaves out, found again as gaps between letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from rag.pdf.characters import Characters
from rag.pdf.columns import same_row

# Letters of scripts that part words by spaces.
RUN = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u05ff\u0620-\u06ff.,;:()'’\"-]{18,}")
RUN_SHARE = 0.2  # of the page's letters in such runs, before gaps are measured
LEAST_GAP = 0.06  # of a line's height, between words
CLEAR = 2.0  # gaps between words are this much wider than those between letters
WORD_LENGTHS = (2.0, 11.0)  # mean letters of a word, for the gaps to be spaces


def missing_spaces(characters: Characters) -> list[int]:
    """Indices before which a space is missing, ascending."""
    text = characters.text
    runs = [match.span() for match in RUN.finditer(text) if "://" not in text[match.start() - 8 : match.end()]]
    if sum(end - start for start, end in runs) <= RUN_SHARE * len(text):
        return []
    gaps = [gap for start, end in runs for gap in _gaps(characters, start, end)]
    border = _border([width for _, width in gaps])
    if border is None:
        return []
    found = [index for index, width in gaps if width >= border]
    letters = sum(end - start for start, end in runs)
    mean = letters / (len(found) + len(runs))
    return found if WORD_LENGTHS[0] <= mean <= WORD_LENGTHS[1] else []


def _gaps(characters: Characters, start: int, end: int) -> Iterator[tuple[int, float]]:
    """(index, gap before it in heights of a line)."""
    boxes = [characters.advance(index) for index in range(start, end)]
    height = max(box.height for box in boxes)
    if height <= 0:
        return
    for index, (one, other) in enumerate(pairwise(boxes), start + 1):
        if same_row(one, other):
            yield index, max(other.left - one.right, one.left - other.right) / height


def _border(widths: list[float]) -> float | None:
    """Where gaps between letters end and those between words begin; None when they are of one kind."""
    if len(widths) < 40:
        return None
    low, high = median(widths), sorted(widths)[-max(1, len(widths) // 20)]
    for _ in range(12):
        border = (low + high) / 2
        below, above = [w for w in widths if w < border], [w for w in widths if w >= border]
        if not below or not above:
            return None
        low, high = sum(below) / len(below), sum(above) / len(above)
    apart = max(LEAST_GAP, CLEAR * max(low, 0.02))
    return (low + high) / 2 if high >= apart and high - low >= LEAST_GAP else None
