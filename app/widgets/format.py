"""Numbers as the reader sees them: counts, durations, moments. Sizes and counts of things: rag.sizes."""

from __future__ import annotations

import re
import time

from rag.sizes import plural

_LINK = re.compile(r"([._/\\])(?=\S)")
_LONG_WORD = re.compile(r"([^\s\u200b._/\\-]{16})(?=[^\s\u200b._/\\-])")
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:ms|s|min|h|tok/s|kB|MB|GB)\b|%)")


def breakable(text: str) -> str:
    """Words that may be wider than a narrow column (names of files) with invisible places to break them: behind what
    joins their parts, and inside a part only where it is long."""
    return _LONG_WORD.sub("\\1\u200b", _LINK.sub("\\1\u200b", text))


def unbroken(text: str) -> str:
    """No line ends between a number and its unit, nor inside `tok/s`."""
    return _BEFORE_UNIT.sub("\u00a0", text).replace("tok/s", "tok/\u2060s")


def shortened(name: str, most: int) -> str:
    """At most `most` characters of a name; what is left out stands in the middle."""
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[head + 1 - most :]}"


def count(value: int) -> str:
    return f"{value:,}"


def duration(seconds: float) -> str:
    """`310 ms`, `4.2 s`, `48 s`, `2 min 8 s`, `1 h 5 min`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def about(seconds: float) -> str:
    """An estimate: coarse on purpose, because it is one."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"~{seconds:.0f} s"
    if seconds < 5400:
        return f"~{seconds / 60:.0f} min"
    return f"~{seconds / 3600:.1f} h"


def rate(tokens: float, milliseconds: float) -> str:
    """Tokens per second; empty when nothing was measured."""
    if milliseconds <= 0 or tokens <= 0:
        return ""
    return per_second(tokens * 1000 / milliseconds)


def per_second(value: float) -> str:
    return f"{value:,.0f} tok/s" if value >= 10 else f"{value:.1f} tok/s"


def ago(moment: float, now: float | None = None) -> str:
    """How long ago a unix time was, in words; a date when it is older than a week."""
    elapsed = (time.time() if now is None else now) - moment
    if elapsed < 60:
        return "just now"
    if elapsed < 3600:
        return f"{plural(int(elapsed // 60), 'minute')} ago"
    if elapsed < 86400:
        return f"{plural(int(elapsed // 3600), 'hour')} ago"
    if elapsed < 7 * 86400:
        return f"{plural(int(elapsed // 86400), 'day')} ago"
    return time.strftime("%d %b %Y", time.localtime(moment))
