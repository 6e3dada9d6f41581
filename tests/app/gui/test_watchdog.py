"""The watchdog sees a main loop that is away, and says nothing about one that is not."""

from __future__ import annotations

import time

from pytestqt.qtbot import QtBot

from app.widgets.watchdog import Watchdog


def test_stall_is_measured_with_its_place(qtbot: QtBot) -> None:
    watchdog = Watchdog(limit=0.1).start()
    qtbot.wait(100)
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        pass
    qtbot.wait(100)
    stalls = watchdog.stop()
    assert stalls
    assert stalls[0].busy > 0.2
    assert stalls[0].is_ours
    assert "test_stall_is_measured_with_its_place" in stalls[0].where


def test_idle_loop_has_no_stall(qtbot: QtBot) -> None:
    watchdog = Watchdog().start()
    qtbot.wait(300)
    assert [stall for stall in watchdog.stop() if stall.is_ours] == []
