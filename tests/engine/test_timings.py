"""Rates that are measured while the engine works."""

from __future__ import annotations

import time

from engine.timings import Rates

MB = 1 << 20


def test_reading_beside_a_step_is_no_slower_than_it_seems() -> None:
    rates, now = Rates(), time.perf_counter()
    rates.saw_restore(100 * MB, 0.1, now)
    assert rates.read == 1000 * MB
    rates.saw_restore(MB, 1.0, now)
    assert rates.read == 1000 * MB, "too small to say anything"
    rates.saw_step()
    rates.saw_restore(100 * MB, 1.0, time.perf_counter())
    assert rates.read == 1000 * MB, "the step had the processors"
    rates.saw_restore(100 * MB, 0.05, time.perf_counter())
    assert 1000 * MB < rates.read < 2000 * MB
    before = rates.read
    rates.saw_restore(100 * MB, 1.0, time.perf_counter() + 1.1)
    assert rates.read < before, "alone it counts"
