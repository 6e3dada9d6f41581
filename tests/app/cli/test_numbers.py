"""Estimates in words."""

from __future__ import annotations

import argparse

import pytest

from app.cli.numbers import about, size


def test_short_estimates_can_be_told_apart() -> None:
    told = [about(s).removeprefix("about ") for s in (0.0, 0.003, 0.53, 0.25, 0.654, 0.999, 2.46, 48.3, 4000)]
    assert told == ["1 ms", "3 ms", "530 ms", "250 ms", "650 ms", "1.0 s", "2.5 s", "48 s", "4,000 s"]


def test_sizes_have_a_unit_and_a_range() -> None:
    parse = size(0.1, 4096)
    assert [parse(text) for text in ("4G", "1.5 gb", "500M", "512MiB", "1T")] == [
        4 * 10**9, 15 * 10**8, 5 * 10**8, 512 << 20, 10**12,
    ]  # fmt: skip
    for text, why in (
        ("4", "write 4G"),
        ("-4G", "write 4G"),
        ("much", "4G"),
        ("0", "must be at least 100M"),
        ("1K", "must be at least 100M"),
        ("9M", "100M and at most 4096G"),
        ("9999T", "most"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=why):
            parse(text)
