"""A middle range taken out of a conversation: fast, timed apart, marked, and exact where the moved state is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kv.shift import next_shifts
from engine.messages import ConversationId, DropState, PageBits, Removal, SaveState, Tokens, TurnFinished
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)

DOCUMENT, OLD, KEPT, QUESTION = prompt(1000, 1), prompt(700, 2), prompt(600, 3), prompt(20, 4)
FULL = DOCUMENT + OLD + KEPT
LEFT = DOCUMENT + KEPT
REMOVAL = Removal(len(DOCUMENT), OLD)


@pytest.fixture
def driver(model: Path, tmp_path: Path) -> Iterator[Driver]:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        yield driver


def shifts(driver: Driver):  # type: ignore[no-untyped-def]
    return next_shifts((), len(DOCUMENT), OLD, driver.loaded.page_tokens)  # type: ignore[union-attr]


def test_only_the_question_is_computed_and_the_answer_is_marked(driver: Driver) -> None:
    driver.run("1", "c", FULL)
    done = driver.run_shifted("2", "c", LEFT + QUESTION, shifts(driver), REMOVAL)
    assert done.approximate
    assert done.reused.total == len(LEFT)
    assert sum(entry.tokens for entry in done.computed) == len(QUESTION)
    assert done.timings.remove > 0
    history = LEFT + QUESTION + done.generated
    report = driver.state("c", history, shifts(driver))
    size = driver.loaded.page_tokens  # type: ignore[union-attr]
    first = len(DOCUMENT) // size
    assert len(report.pages) == -(-len(history) // size)
    assert not any(bits & PageBits.SHIFTED for bits in report.pages[:first])
    assert all(bits & PageBits.SHIFTED and bits & PageBits.MEMORY for bits in report.pages[first:])
    assert report.pages[-1] & PageBits.TAIL
    after = driver.run_shifted("3", "c", history + prompt(5, 6), shifts(driver))
    assert after.approximate
    assert after.timings.remove == 0
    assert after.reused.total == len(history) - 1


def removed(driver: Driver) -> TurnFinished:
    """The turn behind a middle that was taken out, its rest moved up."""
    driver.run("1", "c", FULL)
    return driver.run_shifted("2", "c", LEFT + QUESTION, shifts(driver), REMOVAL)


def test_moved_state_comes_back_from_disk_and_never_passes_for_pure(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        done = removed(driver)
    history = LEFT + QUESTION + done.generated
    with Driver(model, tmp_path / "kv") as driver:
        after = driver.run_shifted("3", "c", history + prompt(5, 6), shifts(driver))
        assert after.approximate
        assert after.reused.disk == len(history) - 1
        pure = driver.run("4", "d", history + prompt(5, 6))
        assert not pure.approximate
        assert pure.reused.total <= len(DOCUMENT)
    with Driver(model, tmp_path / "clean") as clean:
        assert clean.run("4", "d", history + prompt(5, 6)).generated == pure.generated


def test_the_price_of_moving_up_is_the_same_from_disk_as_from_memory(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        driver.run("1", "c", FULL)
        near = driver.client.quote(LEFT + QUESTION, shifts(driver), REMOVAL)
    with Driver(model, tmp_path / "kv") as driver:
        far = driver.client.quote(LEFT + QUESTION, shifts(driver), REMOVAL)
    assert (near.reused_memory, near.reused_disk, near.new) == (len(LEFT), 0, len(QUESTION))
    assert (far.reused_memory, far.reused_disk, far.new) == (0, len(LEFT), len(QUESTION))


def test_what_stood_moved_is_named_where_the_removal_is_taken_back(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        done = removed(driver)
    whole = FULL + QUESTION + done.generated
    with Driver(model, tmp_path / "kv") as driver:
        back = driver.run("3", "c", whole + prompt(5, 6), history=len(whole) - 1)
    assert back.reused.total == len(FULL)
    assert [part.reason for part in back.computed] == ["moved state undone", "last sampled", "new"]
    assert not back.approximate


def test_the_moved_state_is_close_to_the_computed_one(driver: Driver, model: Path, tmp_path: Path) -> None:  # noqa: F811
    """Nothing was removed in effect: what is taken out and what follows are far apart, keys rotate exactly."""
    driver.run("1", "c", KEPT)
    empty = driver.run_shifted("2", "c", KEPT + QUESTION, (), Removal(0, Tokens()))
    assert not empty.approximate
    with Driver(model, tmp_path / "clean") as clean:
        assert clean.run("1", "c", KEPT + QUESTION).generated == empty.generated


def test_where_the_state_is_lost_the_prompt_is_computed_exactly(driver: Driver, model: Path, tmp_path: Path) -> None:  # noqa: F811
    driver.run("1", "c", FULL)
    driver.client.send(DropState(ConversationId("c"), disk=True))
    driver.client.send(SaveState(ConversationId("c")))
    done = driver.run_shifted("2", "c", LEFT + QUESTION, shifts(driver), REMOVAL)
    assert not done.approximate
    assert done.reused.total == 0
    with Driver(model, tmp_path / "clean") as clean:
        assert clean.run("1", "c", LEFT + QUESTION).generated == done.generated


def test_without_room_to_move_it_is_computed(model: Path) -> None:  # noqa: F811
    """Keys of type q8 are not rotated: the kept turns are computed after the document."""
    with Driver(model, None, kv_type_k="q8", kv_type_v="q8") as driver:
        driver.run("1", "c", FULL)
        done = driver.run_shifted("2", "c", LEFT + QUESTION, shifts(driver), REMOVAL)
        assert not done.approximate
        assert done.reused.total >= len(DOCUMENT) - driver.loaded.page_tokens  # type: ignore[union-attr]
        assert done.timings.remove == 0
