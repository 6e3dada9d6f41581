"""Who goes first: short questions, and steps that are parked for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine.messages import Cancel, Role, TokenDelta, TurnId
from engine.runner import RowRun
from kernels.program import PARK, StepResult
from tests.engine.engine_driver import Driver
from tests.engine.test_service import LONG, model, prompt

__all__ = ["model"]


@pytest.fixture
def driver(model: Path, tmp_path: Path) -> Iterator[Driver]:
    with Driver(model, tmp_path / "kv") as driver:
        yield driver


def test_a_short_question_is_read_before_the_next_tokens_of_running_answers(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = driver.client._service.running
    assert running is not None
    step, steps = running.runner.step, []

    def watched(runs: Sequence[RowRun], *, parkable: bool = False) -> StepResult:
        steps.append([len(run.ids) for run in runs])
        return step(runs, parkable=parkable)

    def ask() -> None:
        monkeypatch.setattr(running.runner, "step", watched)
        driver.submit("short", "b", prompt(20, 2))

    driver.at(lambda e: isinstance(e, TokenDelta) and e.turn == "long", ask)
    driver.submit("long", "a", prompt(64), LONG)
    driver.result("short")
    driver.client.send(Cancel(TurnId("long")))
    assert [20] in steps
    assert len(steps[steps.index([20]) + 1]) == 2


def test_parked_steps_of_two_conversations_give_the_answers_of_undisturbed_ones(
    driver: Driver, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Driver(model, tmp_path / "quiet") as quiet:
        wanted = [quiet.run(name, name, prompt(700, seed)).generated for seed, name in enumerate("ab")]
    running = driver.client._service.running
    assert running is not None
    runner, step, parked = running.runner, running.runner.step, []

    def disturbed(runs: Sequence[RowRun], *, parkable: bool = False) -> StepResult:
        runner.cancel[0] = PARK
        result = step(runs, parkable=parkable)
        parked.append(result.parked)
        return result

    monkeypatch.setattr(runner, "step", disturbed)
    monkeypatch.setattr("engine.decoding.RUN_MS", 0.0)
    for seed, name in enumerate("ab"):
        driver.submit(name, name, prompt(700, seed))
    assert [driver.result(name).generated for name in "ab"] == wanted
    assert sum(parked) > 10


def test_answers_in_a_parked_step_wait_for_short_slices_only(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    running = driver.client._service.running
    assert running is not None
    runner, scheduler, step, seen = running.runner, running.scheduler, running.runner.step, set()

    def disturbed(runs: Sequence[RowRun], *, parkable: bool = False) -> StepResult:
        if any(Role.GENERATED in run.roles for run in runs):
            runner.cancel[0] = PARK
        return step(runs, parkable=parkable)

    def slices(*, decoding: bool) -> int:
        seen.add((scheduler._parking.answering, decoding))
        return 40

    def ask() -> None:
        monkeypatch.setattr(runner, "step", disturbed)
        monkeypatch.setattr(scheduler, "slice", slices)
        driver.submit("b", "b", prompt(800, 2))
        driver.submit("c", "c", prompt(800, 3))

    driver.at(lambda e: isinstance(e, TokenDelta) and e.turn == "long", ask)
    driver.submit("long", "a", prompt(64), LONG)
    driver.result("c")
    driver.result("b")
    driver.client.send(Cancel(TurnId("long")))
    assert (True, True) in seen
    assert (True, False) not in seen
