"""Bugs of our own, put in on purpose: what fails, who is told, and that the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.messages import Cancel, Event, TurnFailed, TurnId
from engine.running import Running
from tests.engine.engine_driver import Driver
from tests.engine.test_service import LONG, model, prompt  # noqa: F401  (model is a fixture)


@pytest.fixture
def driver(model: Path, tmp_path: Path) -> Iterator[Driver]:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        yield driver


def running_of(driver: Driver) -> Running:
    assert driver.client._service.running is not None
    return driver.client._service.running


def test_a_bug_in_a_step_fails_the_turn_and_leaves_the_engine_alive(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    running = running_of(driver)
    with monkeypatch.context() as patched:
        patched.setattr(running.runner, "step", lambda runs, parkable: 1 / 0)
        driver.submit("1", "c", prompt(50))
        failed = driver.wait(lambda e: isinstance(e, TurnFailed) and e.turn == "1")
    assert isinstance(failed, TurnFailed)
    assert "ZeroDivisionError" in failed.why
    assert "ZeroDivisionError" in caplog.text
    assert driver.run("2", "c", prompt(50)).reason == "length"


def test_a_bug_in_a_command_is_told_to_who_sent_it(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    running = running_of(driver)
    with monkeypatch.context() as patched:
        patched.setattr(running.scheduler, "submit", lambda turn: 1 / 0)
        driver.submit("1", "c", prompt(50))
        driver.wait(lambda e: isinstance(e, TurnFailed) and e.turn == "1")
    assert driver.run("2", "c", prompt(50)).reason == "length"


def test_a_bug_in_one_turns_admission_leaves_the_others(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> None:
        monkeypatch.setattr(running_of(driver).scheduler._admission, "begin", lambda turn: 1 / 0)
        driver.submit("2", "b", prompt(50))

    def failed(event: Event) -> bool:
        return isinstance(event, TurnFailed) and event.turn == "2"

    driver.at(lambda event: driver.deltas("1") >= 2, ask)
    driver.at(failed, lambda: driver.client.send(Cancel(TurnId("1"))))
    driver.submit("1", "a", prompt(50), LONG)
    assert driver.result("1").reason == "cancelled"
    assert any(map(failed, driver.events))
