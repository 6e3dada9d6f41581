"""Estimates in words."""

from __future__ import annotations

from app.cli.numbers import about


def test_short_estimates_can_be_told_apart() -> None:
    told = [about(s).removeprefix("about ") for s in (0.0, 0.003, 0.53, 0.25, 0.654, 0.999, 2.46, 48.3, 4000)]
    assert told == ["1 ms", "3 ms", "530 ms", "250 ms", "650 ms", "1.0 s", "2.5 s", "48 s", "4,000 s"]
