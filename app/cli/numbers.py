"""Numbers on the command line: checked where they are read, and an estimate in words."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

_UNITS = {"": 1, "k": 10**3, "ki": 2**10, "m": 10**6, "g": 10**9, "t": 10**12, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?|\.\d+) ?((?:[kmgt]i?)?)b?", re.IGNORECASE)


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """A parser of integers from `least` on, up to `most`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more, not {text}")
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"must be {most:,} or less, not {text}")
        return value

    return parse


def number(least: float, most: float = math.inf) -> Callable[[str], float]:
    """A parser of finite numbers in [`least`, `most`]."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is no number") from None
        if not math.isfinite(value) or not least <= value <= most:
            upper = "" if most == math.inf else f" and at most {most:g}"
            raise argparse.ArgumentTypeError(f"must be at least {least:g}{upper}, not {text}")
        return value

    return parse


def size(least: float, most: float) -> Callable[[str], int]:
    """A parser of sizes with a unit (4G, 500 MB, 512MiB) to bytes, of at least `least` and at most `most` GB."""

    allowed = f"at least {_short(least)} and at most {_short(most)}"

    def parse(text: str) -> int:
        found = _SIZE.fullmatch(text.strip())
        if found is None:
            raise argparse.ArgumentTypeError(f"'{text}' is no size; write 4G or 500M, {allowed}")
        value = float(found[1]) * _UNITS[found[2].lower()]
        if value and not found[2]:
            raise argparse.ArgumentTypeError(f"'{text}' has no unit; write {text}G, {allowed}")
        if not least * 1e9 <= value <= most * 1e9:
            raise argparse.ArgumentTypeError(f"must be {allowed}, not {text}")
        return round(value)

    return parse


def _short(gigabytes: float) -> str:
    """`100M`, `64G`: as it is written on the command line."""
    return f"{gigabytes:g}G" if gigabytes >= 1 else f"{gigabytes * 1e3:g}M"


def about(seconds: float) -> str:
    """`about 250 ms`, `about 2.5 s`, `about 48 s`: an estimate, to two digits, so that short ones can be told apart."""
    if seconds < 0.995:
        return f"about {float(f'{max(seconds, 1e-3) * 1e3:.2g}'):.0f} ms"
    return f"about {seconds:.1f} s" if seconds < 9.95 else f"about {seconds:,.0f} s"
