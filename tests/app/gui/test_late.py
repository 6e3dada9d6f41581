"""An object that is made while others go on: uses wait, errors are kept."""

from __future__ import annotations

import threading

import pytest

from app.late import Late


def test_use_waits_until_it_is_made() -> None:
    gate, made = threading.Event(), []

    def make() -> list[int]:
        gate.wait(60)
        return [3, 1, 2]

    late = Late(make)
    assert not late.has_begun
    late.begin()
    user = threading.Thread(target=lambda: made.append(late.index(1)))
    user.start()
    assert not late.is_ready
    assert made == []
    gate.set()
    user.join(60)
    assert made == [1]
    assert late.is_ready


def test_error_of_making_is_raised_at_every_use() -> None:
    late = Late(lambda: 1 // 0)
    late.begin()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            assert late.real
