"""The watchdog sees a main loop that is away, and says nothing about one that is not."""

from __future__ import annotations

import hashlib
import os
import threading
import time

from pytestqt.qtbot import QtBot

from app.widgets.watchdog import Stall, Watchdog


def test_stall_is_measured_with_its_place(qtbot: QtBot) -> None:
    watchdog = Watchdog(limit=0.1).start()
    qtbot.waitUntil(watchdog._answered.is_set)
    while watchdog._answered.is_set():
        pass
    end = time.thread_time() + 0.4  # from the knock on
    while time.thread_time() < end:
        pass
    qtbot.waitUntil(lambda: any(stall.busy > 0.2 for stall in watchdog.stalls))
    found = max(watchdog.stop(), key=lambda stall: stall.busy)
    assert found.is_ours
    assert "test_stall_is_measured_with_its_place" in found.where


def test_waiting_for_the_processor_is_no_stall_of_ours() -> None:
    assert Stall(2.0, 0.05, 0.0, "").is_ours, "a lock, or a disk"
    assert not Stall(2.0, 0.05, 1.5, "").is_ours
    assert Stall(2.0, 0.15, 1.8, "").is_ours, "it computed"


def test_a_lock_is_not_excused_by_other_threads_that_compete(qtbot: QtBot) -> None:
    ending = threading.Event()

    def compute() -> None:  # without the interpreter's lock
        while not ending.is_set():
            hashlib.sha256(bytes(1 << 20)).digest()

    others = [threading.Thread(target=compute) for _ in range(4 * (os.cpu_count() or 1))]
    for thread in others:
        thread.start()
    watchdog = Watchdog(limit=0.1).start()
    qtbot.waitUntil(watchdog._answered.is_set)
    time.sleep(1.5)  # as in a lock that another thread holds
    ending.set()
    qtbot.waitUntil(lambda: any(stall.seconds > 1.0 for stall in watchdog.stalls))
    for thread in others:
        thread.join()
    found = max(watchdog.stop(), key=lambda stall: stall.seconds)
    assert found.kept_off < 0.5 * found.seconds
    assert found.is_ours


def test_idle_loop_has_no_stall(qtbot: QtBot) -> None:
    watchdog = Watchdog().start()
    qtbot.wait(300)
    assert [stall for stall in watchdog.stop() if stall.is_ours] == []
