"""Sizes of files and of state, and counts, for people: the same in the window, on the command line and in messages."""

from __future__ import annotations

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def size_text(size: float) -> str:
    """Decimal units, three significant figures: `98.4 MB`, `2.00 GB`; nothing that is there is shown as 0."""
    for unit, name in _UNITS:
        if size >= unit * 0.9995:  # rounded, it would be 1,000 of the next smaller one
            value = size / unit
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:,.{digits}f} {name}"
    return plural(int(size), "byte")


def plural(value: int, noun: str) -> str:
    """`1 page`, `1,158 pages`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"
