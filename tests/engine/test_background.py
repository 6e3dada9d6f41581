"""Documents read ahead: below every turn, kept when stopped or killed, shared by all chats that begin with them."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine.background import DocumentReader
from engine.kv.disk import Handed
from engine.messages import (
    ComputedRange,
    DocumentProgress,
    DocumentRead,
    DocumentStopped,
    DropState,
    EngineStats,
    PrefillDocument,
    SaveState,
    StopDocument,
    Tokens,
    TurnFinished,
    TurnRestored,
    document_state,
)
from engine.runner import RowRun, Runner
from engine.store import KvStore
from kernels.program import StepResult
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)

DOCUMENT = prompt(6000, 5)


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed is told at once, however busy the disk is."""
    monkeypatch.setattr("engine.background._WAIT_SHARE", 1e6)
    monkeypatch.setattr("engine.background._MOST_WAIT_SECONDS", 60.0)


@pytest.fixture
def driver(model: Path, tmp_path: Path) -> Iterator[Driver]:  # noqa: F811
    with Driver(model, tmp_path / "kv") as driver:
        yield driver


def read(driver: Driver, tokens: Tokens = DOCUMENT, name: str = "d") -> DocumentRead:
    driver.client.send(PrefillDocument(name, tokens, "A document"))
    done = driver.wait(lambda e: isinstance(e, DocumentRead) and e.document == name)
    assert isinstance(done, DocumentRead)
    return done


def test_every_chat_on_a_document_that_was_read_starts_from_its_pages(driver: Driver) -> None:
    done = read(driver)
    assert (done.tokens, done.computed, done.label) == (6000, 6000, "A document")
    assert done.seconds > 0
    assert done.bytes_written >= 6000 * driver.loaded.kv_bytes_per_token  # type: ignore[union-attr]
    told = {event.done for event in driver.events if isinstance(event, DocumentProgress)} - {6000}
    assert told
    assert all(done % driver.loaded.page_tokens == 0 for done in told), "what is told is sealed"  # type: ignore[union-attr]
    for seed, chat in enumerate("ab", 20):
        answer = driver.run(chat, chat, DOCUMENT + prompt(9, seed))
        assert answer.reused.memory == 6000
        assert answer.computed == (ComputedRange(9, "new"),)
    report = driver.state("a", DOCUMENT)
    assert document_state("d") in report.shared_with


def test_the_answer_is_the_one_of_a_chat_that_read_it_itself(driver: Driver, model: Path, tmp_path: Path) -> None:  # noqa: F811
    read(driver)
    ahead = driver.run("1", "c", DOCUMENT + prompt(9, 2))
    with Driver(model, tmp_path / "other") as other:
        assert other.run("1", "c", DOCUMENT + prompt(9, 2)).generated == ahead.generated


@pytest.mark.usefixtures("_patient")
def test_a_question_goes_first_and_the_reading_goes_on_after_it(driver: Driver) -> None:
    driver.at(
        lambda e: isinstance(e, DocumentProgress) and e.done >= 1500, lambda: driver.submit("1", "c", prompt(400, 9))
    )
    driver.client.send(PrefillDocument("d", DOCUMENT))
    answer = driver.result("1")
    before = [event for event in driver.events if not isinstance(event, EngineStats)]
    asked = next(i for i, e in enumerate(before) if isinstance(e, TurnRestored))
    ended = next(i for i, e in enumerate(before) if isinstance(e, TurnFinished))
    assert not any(isinstance(event, DocumentProgress) for event in before[asked:ended])
    assert answer.computed == (ComputedRange(400, "new"),)
    done = driver.wait(lambda e: isinstance(e, DocumentRead))
    assert isinstance(done, DocumentRead)
    assert done.computed == 6000, "nothing was read twice"


@pytest.mark.usefixtures("_patient")
def test_stopped_at_some_point_it_goes_on_there(driver: Driver) -> None:
    driver.at(
        lambda e: isinstance(e, DocumentProgress) and e.done >= 4000, lambda: driver.client.send(StopDocument("d"))
    )
    driver.client.send(PrefillDocument("d", DOCUMENT))
    stopped = driver.wait(lambda e: isinstance(e, DocumentStopped))
    assert isinstance(stopped, DocumentStopped)
    assert 4000 <= stopped.done < 6000
    assert read(driver).computed == 6000 - stopped.done


@pytest.mark.parametrize(("tokens", "step"), [(2000, 256), (6000, 375)])
def test_the_step_that_a_kill_loses_is_a_small_part_of_a_document(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, tokens: int, step: int
) -> None:
    read(driver, DOCUMENT, "warm")  # without a measured rate steps are short anyway
    taken, run = list[int](), Runner.step

    def counted(runner: Runner, runs: Sequence[RowRun]) -> StepResult:
        taken.append(len(runs[0].ids))
        return run(runner, runs)

    monkeypatch.setattr(Runner, "step", counted)
    assert read(driver, prompt(tokens, 9)).computed == tokens == sum(taken)
    assert max(taken) <= step


@pytest.mark.usefixtures("_patient")
def test_stopped_while_it_made_way_it_is_where_it_was(driver: Driver) -> None:
    def ask_and_stop() -> None:
        driver.submit("1", "c", prompt(2000, 9))
        driver.client.send(StopDocument("d"))

    driver.at(lambda e: isinstance(e, DocumentProgress) and e.done >= 1500, ask_and_stop)
    driver.client.send(PrefillDocument("d", DOCUMENT))
    stopped = driver.wait(lambda e: isinstance(e, DocumentStopped))
    assert isinstance(stopped, DocumentStopped)
    assert 1500 <= stopped.done < 6000


@pytest.mark.usefixtures("_patient")
def test_a_new_process_goes_on_where_the_last_one_was_quit(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path) as driver:
        driver.at(lambda e: isinstance(e, DocumentProgress) and e.done >= 3000, driver.quit)
        driver.client.send(PrefillDocument("d", DOCUMENT))
        driver.client.wait()
    stopped = driver.wait(lambda e: isinstance(e, DocumentStopped))
    assert isinstance(stopped, DocumentStopped)
    with Driver(model, tmp_path) as driver:
        assert read(driver).computed == 6000 - stopped.done


def progress(driver: Driver) -> list[DocumentProgress]:
    return [event for event in driver.events if isinstance(event, DocumentProgress)]


def test_a_full_disk_is_told_beside_what_is_computed(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("engine.store.segment._write_all", full)
    read(driver)
    assert any(0 < event.done < 6000 for event in progress(driver))
    assert all("full" in event.not_saved for event in progress(driver) if event.done)


def test_a_disk_that_takes_long_is_not_waited_for_and_nothing_is_told(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told is what the disk took; a turn that comes between two steps hardly waits for the writing thread."""
    waits = list[float]()

    class Pending(Handed):
        def wait(self, timeout: float = 0.0) -> bool:
            waits.append(timeout)
            return super().wait(timeout)

    monkeypatch.setattr(KvStore, "hand_over", lambda store: Pending())
    read(driver)
    assert {event.done for event in progress(driver)} == {0}
    assert waits.count(0.0) > 2, "it is looked at while the next steps run"
    assert max(waits) <= 0.02


def test_the_end_of_a_document_is_told_behind_the_turn_that_came_before_the_files_held_it(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told as kept in part and as read at once."""
    handed_over = DocumentReader._handed_over

    def interrupted(reader: DocumentReader) -> Handed | None:
        monkeypatch.setattr(DocumentReader, "_handed_over", handed_over)
        driver.submit("1", "c", prompt(400, 9))
        return Handed()  # of which nothing is known yet

    monkeypatch.setattr(DocumentReader, "_handed_over", interrupted)
    done = read(driver)
    ends = [e for e in driver.events if isinstance(e, TurnFinished | DocumentRead)]
    assert [type(e) for e in ends] == [TurnFinished, DocumentRead]
    assert progress(driver)[-1].done == done.tokens == done.computed == 6000


def test_a_document_over_the_context_or_the_memory_says_why(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, None, context=512) as driver:
        driver.client.send(PrefillDocument("d", DOCUMENT))
        stopped = driver.wait(lambda e: isinstance(e, DocumentStopped))
        assert isinstance(stopped, DocumentStopped)
        assert "context" in stopped.why
    with Driver(model, None, ram_budget_bytes=4 << 20) as driver:
        driver.client.send(PrefillDocument("d", DOCUMENT))
        stopped = driver.wait(lambda e: isinstance(e, DocumentStopped))
        assert isinstance(stopped, DocumentStopped)
        assert "memory" in stopped.why
        assert driver.run("1", "c", prompt(40)).reason == "length"


def test_a_document_at_which_a_step_fails_is_let_go(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Runner, "step", lambda *given, **named: [][0])
        driver.client.send(PrefillDocument("d", DOCUMENT))
        driver.wait(lambda e: isinstance(e, DocumentStopped))
    assert read(driver).computed == 6000


def test_a_document_that_is_dropped_is_read_again(driver: Driver) -> None:
    read(driver)
    driver.client.send(DropState(document_state("d"), disk=True))
    driver.client.send(SaveState(document_state("d")))  # deleting on disk is write-behind, like writing
    assert read(driver, name="e").computed == 6000
