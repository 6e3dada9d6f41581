"""Imports go on beside answers, but slowly."""

import time

import pytest

from app.core import pace
from app.core.pace import Pace

WORK_S = 0.04


def rested(answering: bool, stopped: bool = False) -> float:
    """Seconds of the pause after some work."""
    made = Pace(lambda: answering, lambda: stopped)
    time.sleep(WORK_S)
    started = time.monotonic()
    made.rest()
    return time.monotonic() - started


def test_work_is_followed_by_a_pause_while_answers_are_written_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PAUSE", 5.0)
    assert rested(answering=True) >= 5 * WORK_S
    assert rested(answering=False) < WORK_S
    assert rested(answering=True, stopped=True) < WORK_S


def test_a_pause_ends_with_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PAUSE", 1000.0)
    ends = time.monotonic() + 0.2
    made = Pace(lambda: time.monotonic() < ends, lambda: False)
    time.sleep(0.02)
    made.rest()
    assert 0 <= time.monotonic() - ends < 3


def test_little_work_is_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LEAST_S", 3600.0)
    monkeypatch.setattr(pace, "PAUSE", 1000.0)
    assert rested(answering=True) < WORK_S
