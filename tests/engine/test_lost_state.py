"""Kept state that turns out damaged, or is lost while it is used: the answer is the one of a run that never left."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from engine.messages import (
    AnswerDoubted,
    Cancel,
    ComputedRange,
    ConversationId,
    EngineNotice,
    Sampling,
    SaveState,
    TokenDelta,
    Tokens,
    TurnFinished,
    TurnId,
    TurnRestored,
)
from engine.store.mapping import can_map
from engine.store.segment import Found, scan
from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.store.test_damage import flip
from tests.engine.test_service import model, prompt  # noqa: F401  (a fixture)

LONG = Sampling(temperature=1.0, seed=5, max_tokens=300)


def pages(folder: Path) -> list[tuple[Path, Found]]:
    found = [(path, record) for path in sorted((folder / "segments").iterdir()) for record in scan(path, 0)]
    return [(path, record) for path, record in found if record.header.kind == 0]


def kept(model: Path, folder: Path, sampling: Sampling) -> tuple[Tokens, TurnFinished]:  # noqa: F811
    """A conversation on disk, and what it is answered to its next question by an engine that never left."""
    with Driver(model, folder) as driver:
        first = driver.run("1", "c", prompt(1500))
        tokens = prompt(1500) + first.generated + prompt(5, 3)
        return tokens, driver.run("2", "other", tokens, sampling)


def test_a_damaged_page_is_found_before_the_first_token_leaves(model: Path, tmp_path: Path) -> None:  # noqa: F811
    tokens, twin = kept(model, tmp_path / "kv", LONG)
    path, record = pages(tmp_path / "kv")[3]
    flip(path, record.offset + record.header.payload_offset + 5)
    with Driver(model, tmp_path / "kv") as driver:
        answered = driver.run("2", "c", tokens, LONG, history=len(tokens) - 6)
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
        assert answered.generated == twin.generated
        assert answered.reused.disk == len(tokens) - size
        assert answered.computed == (ComputedRange(size, "damaged", answered.computed[0].at),), (
            "all of it, by its place"
        )
        told = [event.reused.disk for event in driver.events if isinstance(event, TurnRestored)]
        assert told[-2:] == [3 * size, len(tokens) - size]
        assert driver.wait(lambda event: isinstance(event, EngineNotice))
        again = driver.run("3", "c", tokens, LONG)
        assert again.generated == twin.generated


@pytest.mark.skipif(not can_map(), reason="pages are read into memory here")
@pytest.mark.parametrize("keep", [0, 2, 4])
def test_a_file_cut_short_under_an_answer_does_not_change_it(
    model: Path, tmp_path: Path, keep: int,  # noqa: F811
) -> None:  # fmt: skip
    tokens, twin = kept(model, tmp_path / "kv", LONG)
    with Driver(model, tmp_path / "kv") as driver:
        path, record = pages(tmp_path / "kv")[keep]
        driver.at(lambda event: isinstance(event, TokenDelta), lambda: os.truncate(path, record.offset))
        driver.submit("2", "c", tokens, LONG)
        answered = driver.result("2")
        assert answered.reused.total == keep * driver.loaded.page_tokens, "what was lost does not count"
        assert sum(part.tokens for part in answered.computed) == len(tokens) - answered.reused.total
        assert answered.generated == twin.generated
        assert not answered.doubtful, "no step that met the loss counted"
        assert driver.wait(lambda event: isinstance(event, EngineNotice) and "in use" in event.what)
        again = driver.run("3", "c", tokens + answered.generated + prompt(3, 4))
        assert again.reused.total >= len(tokens), "what was computed again is kept"
    with Driver(model, tmp_path / "kv") as driver:
        assert driver.run("3", "c", tokens + answered.generated + prompt(3, 4)).generated == again.generated


@pytest.mark.parametrize("what", ["kv/segments", "kv"])
def test_a_folder_removed_during_an_answer_costs_nothing_but_the_copy(model: Path, tmp_path: Path, what: str) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        first = driver.run("1", "c", prompt(300))
        tokens = prompt(300) + first.generated + prompt(5, 3)
        driver.at(
            lambda event: driver.deltas("2") >= 3, lambda: shutil.rmtree((tmp_path / what).rename(tmp_path / "gone"))
        )
        driver.submit("2", "c", tokens, LONG, history=len(tokens) - 6)
        second = driver.result("2")
        tokens += second.generated + prompt(5, 4)
        third = driver.run("3", "c", tokens, history=len(tokens) - 6)
        told = [event.what for event in driver.events if isinstance(event, EngineNotice)]
        assert [text for text in told if "engine" in text] == []
        assert sum("was removed" in text for text in told) == 1
    assert second.reason != "cancelled"
    with Driver(model, tmp_path / "kv") as driver:
        tokens += third.generated + prompt(5, 5)
        assert driver.run("4", "c", tokens, history=len(tokens) - 6).reused.disk >= len(tokens) - 7


def found_by_another(folder: Path, page: int) -> None:
    """Flips a byte of a page, and has the command line find it."""
    path, record = pages(folder)[page]
    flip(path, record.offset + record.header.payload_offset + 5)
    with StoreTools(folder) as tools:
        assert len(tools.verify(drop_damaged=True).damaged) == 1


def verified(folder: Path) -> bool:
    with StoreTools(folder) as tools:
        return not tools.verify().damaged


@pytest.mark.skipif(not can_map(), reason="pages are read into memory here")
def test_damage_under_a_page_in_use_that_another_process_finds_is_neither_used_nor_saved(
    model: Path, tmp_path: Path,  # noqa: F811
) -> None:  # fmt: skip
    tokens, twin = kept(model, tmp_path / "kv", LONG)
    with Driver(model, tmp_path / "kv") as driver:
        driver.run("1", "c", tokens, Sampling(temperature=0.0, max_tokens=1))
        driver.client.send(SaveState(ConversationId("c")))
        driver.state("c", tokens)
        found_by_another(tmp_path / "kv", 3)
        answered = driver.run("2", "c", tokens, LONG, history=len(tokens))
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
        assert answered.generated == twin.generated
        assert answered.computed[0] == ComputedRange(size, "damaged", answered.computed[0].at), "what is behind stays"
        assert not answered.doubtful, "it was met before the first token"
        doubted = [event for event in driver.events if isinstance(event, AnswerDoubted)]
        assert doubted == [AnswerDoubted(TurnId("1"), ConversationId("c"))], "the answer before may be wrong"
        assert driver.wait(lambda event: isinstance(event, EngineNotice))
    assert verified(tmp_path / "kv")
    with Driver(model, tmp_path / "kv") as driver:
        assert driver.run("3", "c", tokens, LONG).generated == twin.generated


@pytest.mark.skipif(not can_map(), reason="pages are read into memory here")
def test_an_answer_that_runs_takes_such_pages_anew(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,  # noqa: F811
) -> None:  # fmt: skip
    monkeypatch.setattr("engine.kv.losses._LOOK_SECONDS", 0.0)
    tokens, _ = kept(model, tmp_path / "kv", LONG)
    with Driver(model, tmp_path / "kv") as driver:
        driver.submit("2", "c", tokens, Sampling(temperature=0.0, max_tokens=2000), history=len(tokens))
        driver.wait_tokens("2", 3)
        found_by_another(tmp_path / "kv", 3)
        answered = driver.result("2")
        assert 0 < answered.reused.total < len(tokens), "what was damaged does not count"
        assert 3 <= answered.doubtful < len(answered.generated), "what was drawn before is told"
        fresh = tokens + answered.generated + prompt(3, 4)
        again = driver.run("3", "c", fresh, LONG)
    assert verified(tmp_path / "kv")
    with Driver(model, tmp_path / "cold") as driver:
        assert driver.run("3", "c", fresh, LONG).generated == again.generated


@pytest.mark.skipif(not can_map(), reason="pages are read into memory here")
def test_damage_that_another_process_finds_is_told_of_the_answers_on_it_though_nobody_asks(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,  # noqa: F811
) -> None:  # fmt: skip
    """Once, of those that used the page as it lay in the file; others are not in doubt."""
    monkeypatch.setattr("engine.service._TIDY_SECONDS", 0.05)
    tokens, _ = kept(model, tmp_path / "kv", LONG)
    with Driver(model, tmp_path / "kv") as driver:
        driver.run("1", "c", tokens)
        driver.run("2", "elsewhere", prompt(600, 9))
        found_by_another(tmp_path / "kv", 3)
        driver.wait(lambda event: isinstance(event, AnswerDoubted))
        driver.run("3", "c", tokens)
        doubted = [event for event in driver.events if isinstance(event, AnswerDoubted)]
    assert doubted == [AnswerDoubted(TurnId("1"), ConversationId("c"))]


def test_damage_that_another_turn_meets_before_an_answer_is_stopped_is_told_of_it(
    model: Path, tmp_path: Path,  # noqa: F811
) -> None:  # fmt: skip
    """Between a step of the answer and its next."""
    with Driver(model, tmp_path) as driver:
        driver.at(lambda event: driver.deltas("1") >= 3, lambda: met_and_stopped(driver, "1"))
        driver.submit("1", "c", prompt(600), Sampling(temperature=0.0, max_tokens=2000))
        answered = driver.result("1")
    assert (answered.reason, answered.doubtful) == ("cancelled", len(answered.generated))


def met_and_stopped(driver: Driver, turn: str) -> None:
    cache = driver.client._service.running.cache  # type: ignore[union-attr]
    cache.losses.distrust(next(node for node in cache.tree if node.start))
    driver.client.send(Cancel(TurnId(turn)))
