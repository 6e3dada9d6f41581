"""Answers that go round in circles, as small models' do: seen early and ended, for the reader's time's sake."""

from __future__ import annotations

SHORTEST = 12  # characters of a repeated piece; shorter ones are lists, tables, dotted lines
LONGEST = 240
TIMES = 3
LETTERS = 4  # a piece of rules and digits may well come three times


def goes_in_circles(text: str) -> bool:
    """The text ends with the same piece TIMES times in a row."""
    end = len(text)
    for size in range(SHORTEST, min(LONGEST, end // TIMES) + 1):
        piece = text[end - size :]
        if text.endswith(piece * TIMES) and sum(c.isalpha() for c in piece) >= LETTERS:
            return True
    return False
