"""The gate for background work: off the main thread, back on it, one write at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from app.tasks import Tasks


@pytest.fixture
def tasks(qtbot: QtBot) -> Iterator[Tasks]:
    made = Tasks()
    yield made
    made.close()


def test_work_runs_elsewhere_and_its_result_comes_home(tasks: Tasks, qtbot: QtBot) -> None:
    seen: list[tuple[int, int]] = []
    tasks.read(threading.get_ident, lambda worker: seen.append((worker, threading.get_ident())))
    qtbot.waitUntil(lambda: bool(seen))
    worker, home = seen[0]
    assert worker != threading.get_ident() == home


def test_writes_never_overlap_and_keep_their_order(tasks: Tasks, qtbot: QtBot) -> None:
    running, most, order = [], [], []

    def work(number: int) -> int:
        running.append(number)
        most.append(len(running))
        time.sleep(0.005)
        running.remove(number)
        return number

    for number in range(8):
        tasks.write(lambda number=number: work(number), order.append)
    qtbot.waitUntil(lambda: len(order) == 8)
    assert order == list(range(8))
    assert max(most) == 1


def test_failure_goes_to_its_handler(tasks: Tasks, qtbot: QtBot) -> None:
    errors: list[Exception] = []
    tasks.read(lambda: 1 // 0, None, errors.append)
    qtbot.waitUntil(lambda: bool(errors))
    assert isinstance(errors[0], ZeroDivisionError)


def test_failure_nobody_handles_is_announced(tasks: Tasks, qtbot: QtBot) -> None:
    with qtbot.waitSignal(tasks.failed) as announced:
        tasks.write(lambda: [][1])
    assert isinstance(announced.args[0], IndexError)


def test_result_for_a_deleted_widget_is_dropped(tasks: Tasks, qtbot: QtBot) -> None:
    class Receiver(QObject):
        def take(self, value: int) -> None:
            taken.append(value)

    taken: list[int] = []
    receiver, gate, done = Receiver(), threading.Event(), []
    tasks.write(lambda: gate.wait(60), receiver.take)
    tasks.write(lambda: 1, done.append)
    import shiboken6

    shiboken6.delete(receiver)
    gate.set()
    qtbot.waitUntil(lambda: bool(done))
    assert taken == []


def test_closing_waits_for_a_read_that_runs(qtbot: QtBot) -> None:
    """What it reads is closed next: a database closed under a running query ends the process."""
    tasks, begun, go_on, done = Tasks(), threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(60)
        time.sleep(0.05)
        done.set()

    tasks.read(work)
    assert begun.wait(60)
    threading.Timer(0.05, go_on.set).start()
    tasks.close()
    assert done.is_set()
