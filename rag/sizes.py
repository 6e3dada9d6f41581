"""Sizes of files for people."""

from __future__ import annotations

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def size_text(size: int) -> str:
    """Decimal units, two or three digits; nothing that is there is shown as 0."""
    for unit, name in _UNITS:
        if size >= unit:
            value = size / unit
            return f"{value:.1f} {name}" if value < 10 else f"{value:,.0f} {name}"
    return f"{size} bytes"
