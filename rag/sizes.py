"""Sizes of files and of state for people: one unit everywhere, the window, the command line and every message."""

from __future__ import annotations

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def size_text(size: float) -> str:
    """Decimal units, three significant figures: `98.4 MB`, `2.00 GB`; nothing that is there is shown as 0."""
    for unit, name in _UNITS:
        if size >= unit * 0.9995:  # rounded, it would be 1,000 of the next smaller one
            value = size / unit
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:,.{digits}f} {name}"
    return "1 byte" if int(size) == 1 else f"{int(size)} bytes"
