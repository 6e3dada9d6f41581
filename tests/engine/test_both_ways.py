"""Where computing and reading take about as long, the end of a prefix is read while its front is computed."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.kv.log import read_log
from engine.messages import Cancel, ComputedRange, Sampling, Tokens, TurnFinished, TurnId
from engine.runner import RowRun, Runner
from engine.store.segment import scan
from kernels.program import StepResult
from tests.engine.engine_driver import Driver
from tests.engine.store.test_damage import flip
from tests.engine.test_service import model, prompt  # noqa: F401  (a fixture)

SAMPLED = Sampling(temperature=1.0, seed=3, max_tokens=30)
REASON = "faster to compute than to read"


def kept(model: Path, folder: Path) -> tuple[Tokens, TurnFinished, int]:  # noqa: F811
    """A conversation on disk, what it is answered next by an engine that never left, and bytes per token."""
    with Driver(model, folder) as driver:
        first = driver.run("1", "c", prompt(1500))
        tokens = prompt(1500) + first.generated + prompt(5, 3)
        return tokens, driver.run("2", "other", tokens, SAMPLED), driver.loaded.kv_bytes_per_token  # type: ignore[union-attr]


def measured(folder: Path, prefill: float, read: float) -> None:
    """What the engine believes of this machine, in tokens and bytes per second."""
    (path,) = folder.glob("rates-*.json")
    path.write_text(json.dumps({"prefill": prefill, "decode": 50.0, "read": read}))


def test_the_front_is_computed_and_the_end_is_read(model: Path, tmp_path: Path) -> None:  # noqa: F811
    tokens, twin, per_token = kept(model, tmp_path / "kv")
    measured(tmp_path / "kv", 1000.0, 1000.0 * per_token)
    with Driver(model, tmp_path / "kv") as driver:
        history = len(tokens) - 6
        done = driver.run("2", "c", tokens, SAMPLED, history=history)
        assert done.generated == twin.generated
        assert 400 < done.reused.disk < 1200
        assert positions(done) == set(range(len(tokens) - done.reused.total)), "all behind it was kept"
        assert done.computed[0] == ComputedRange(len(tokens) - done.reused.total, REASON)
        assert sum(entry.tokens for entry in done.computed) + done.reused.total == len(tokens)
        assert driver.run("3", "c", tokens, SAMPLED).generated == twin.generated
    with Driver(model, tmp_path / "kv") as driver:
        measured_again = driver.run("4", "c", tokens, SAMPLED)
        assert measured_again.generated == twin.generated


def test_two_that_ask_the_same_at_once(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    """The second one takes over from the first also what it began to read itself."""
    tokens, twin, per_token = kept(model, tmp_path / "kv")
    measured(tmp_path / "kv", 1000.0, 1000.0 * per_token)
    steps, step = list[tuple[int, ...]](), Runner.step

    def slow(runner: Runner, runs: Sequence[RowRun], *, parkable: bool = False) -> StepResult:
        time.sleep(0.02)
        steps.extend(run.ids for run in runs)
        return step(runner, runs, parkable=parkable)

    monkeypatch.setattr(Runner, "step", slow)
    with Driver(model, tmp_path / "kv") as driver:
        for name in "23":
            driver.submit(name, name, tokens, replace(SAMPLED, max_tokens=1))
        done = [driver.result(name) for name in "23"]
    assert [one.generated.ids for one in done] == [twin.generated.ids[:1]] * 2
    assert positions(done[0]), "the front is computed"
    assert done[1].reused.total > done[0].reused.total, "and not twice"
    assert steps
    assert all(steps), "every run has tokens"


def test_all_is_computed_where_reading_is_far_slower(model: Path, tmp_path: Path) -> None:  # noqa: F811
    tokens, twin, per_token = kept(model, tmp_path / "kv")
    measured(tmp_path / "kv", 100_000.0, 20.0 * per_token)
    with Driver(model, tmp_path / "kv") as driver:
        done = driver.run("2", "c", tokens, SAMPLED, history=len(tokens) - 6)
        assert done.generated == twin.generated
        assert (done.reused.total, done.computed[0].reason) == (0, REASON)


def positions(done: TurnFinished) -> set[int]:
    """Of the prompt, that went through the model."""
    return {position for start, stop in done.gaps for position in range(start, stop)}


@pytest.mark.parametrize("page", [0, -2])
def test_damage_behind_the_front_is_computed_too(model: Path, tmp_path: Path, page: int) -> None:  # noqa: F811
    tokens, twin, per_token = kept(model, tmp_path / "kv")
    measured(tmp_path / "kv", 1000.0, 1000.0 * per_token)
    found = [(path, record) for path in (tmp_path / "kv" / "segments").iterdir() for record in scan(path, 0)]
    ours = [pair for pair in found if pair[1].header.kind == 0 and pair[1].header.start > 800]
    path, record = sorted(ours, key=lambda pair: pair[1].header.start)[page]
    flip(path, record.offset + record.header.payload_offset + 3)
    with Driver(model, tmp_path / "kv") as driver:
        assert driver.run("2", "c", tokens, SAMPLED).generated == twin.generated


@pytest.mark.parametrize("damaged", [(0,), (3,), (2, 4), (1, 2)])
@pytest.mark.parametrize("early", [False, True])
def test_what_is_intact_behind_damage_is_not_computed_again(
    model: Path, tmp_path: Path, damaged: tuple[int, ...], early: bool  # noqa: F811
) -> None:  # fmt: skip
    folder = tmp_path / "kv"
    tokens, twin, per_token = kept(model, tmp_path / "twin")
    history = len(tokens) - 6
    with Driver(model, folder) as driver:
        driver.run("1", "c", prompt(1500))
    measured(folder, 100.0, 1e4 * per_token if early else 1e9 * per_token)  # early: checks take longer than a step
    found = [(path, record) for path in (folder / "segments").iterdir() for record in scan(path, 0)]
    with Driver(model, folder) as driver:
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
        for path, record in found:
            if record.header.kind == 0 and record.header.start // size in damaged:
                flip(path, record.offset + record.header.payload_offset + 3)
        done = driver.run("2", "c", tokens, SAMPLED, history=history)
        assert done.generated == twin.generated
        assert done.computed[0] == replace(done.computed[0], tokens=len(damaged) * size, reason="damaged")
        assert done.reused.total == history - len(damaged) * size
        again = {position for page in damaged for position in range(page * size, page * size + size)}
        assert positions(done) == again | set(range(history, len(tokens)))
    _, entry = [entry for entry in read_log(folder, 100) if entry["operation"] == "reuse"]
    assert (entry["reason"], entry["cut"], entry["disk"]) == ("damaged", len(again), done.reused.total)
    measured(folder, 100.0, 1e9 * per_token)
    with Driver(model, folder) as driver:
        assert driver.run("3", "c", tokens, SAMPLED).reused.total == len(tokens)


def test_what_was_computed_in_front_is_not_told_as_reused(model: Path, tmp_path: Path) -> None:  # noqa: F811
    tokens, twin, per_token = kept(model, tmp_path / "kv")
    measured(tmp_path / "kv", 1000.0, 1000.0 * per_token)
    for path in (tmp_path / "kv" / "segments").iterdir():
        for record in (found for found in scan(path, 0) if found.header.kind == 0):
            flip(path, record.offset + record.header.payload_offset + 3)
    with Driver(model, tmp_path / "kv") as driver:
        done = driver.run("2", "c", tokens, SAMPLED, history=len(tokens) - 6)
        assert done.generated == twin.generated
        assert (done.reused.total, done.computed[0].reason) == (0, "damaged")
        assert sum(entry.tokens for entry in done.computed) == len(tokens)


def test_a_turn_that_is_cancelled_before_they_meet_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:  # noqa: F811
    tokens, twin, per_token = kept(model, tmp_path / "kv")
    measured(tmp_path / "kv", 1000.0, 1000.0 * per_token)
    with Driver(model, tmp_path / "kv", prefill_chunk=64) as driver:
        for number in range(3):
            driver.submit(f"x{number}", "c", tokens, SAMPLED)
            driver.client.send(Cancel(TurnId(f"x{number}")))
            driver.result(f"x{number}")
        assert driver.run("2", "c", tokens, SAMPLED).generated == twin.generated
