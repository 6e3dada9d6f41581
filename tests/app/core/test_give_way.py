"""Imports go on beside answers, but slowly."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.core import pace
from app.core.pace import LONGEST_S, POLL_S, Pace

WORK_S = 0.04


class Clock:
    """Stands for the time of `pace`: it goes on only while somebody sleeps or works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.pass_by))

    def pass_by(self, seconds: float) -> None:
        self.now += seconds

    def rested(self, made: Pace, work: float = WORK_S) -> float:
        """Seconds of the pause after some work."""
        self.pass_by(work)
        before = self.now
        made.rest()
        return self.now - before


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def pace_of(answering: bool, stopped: bool = False) -> Pace:
    return Pace(lambda: answering, lambda: stopped)


def test_work_is_followed_by_a_pause_while_answers_are_written_and_only_then(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "PAUSE", 5.0)
    made = pace_of(answering=True)
    for _ in range(3):
        assert clock.rested(made) == pytest.approx(5 * WORK_S)
    assert clock.rested(made, 60.0) == pytest.approx(LONGEST_S)
    assert clock.rested(pace_of(answering=False)) == 0
    assert clock.rested(pace_of(answering=True, stopped=True)) == 0


def test_a_pause_ends_with_the_answer(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PAUSE", 1000.0)
    ends = clock.now + 0.2
    clock.rested(Pace(lambda: clock.now < ends, lambda: False))
    assert 0 <= clock.now - ends <= POLL_S


def test_little_work_is_gathered(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LEAST_S", 10 * WORK_S)
    made = pace_of(answering=True)
    assert [clock.rested(made) for _ in range(9)] == [0] * 9
    assert clock.rested(made, 2 * WORK_S) > 0
