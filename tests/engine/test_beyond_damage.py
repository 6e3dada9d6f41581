"""A page that is lost costs its own tokens, however that shows: what is intact behind it is not computed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.background import DocumentReader
from engine.document_job import Job
from engine.kv.sequence import Sequence
from engine.messages import (
    ConversationId,
    DocumentProgress,
    DocumentRead,
    EngineNotice,
    Focus,
    PrefillDocument,
    Tokens,
    TurnFinished,
)
from engine.runner import RowRun
from engine.store.segment import Found, scan
from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.store.test_damage import flip
from tests.engine.test_service import model, prompt  # noqa: F401  (a fixture)
from tests.engine.test_window_equality import model as windows  # noqa: F401  (a fixture)

LENGTH = 1500


def pages(folder: Path) -> list[tuple[Path, Found]]:
    found = [(path, record) for path in sorted((folder / "segments").iterdir()) for record in scan(path, 0)]
    return [(path, record) for path, record in found if record.header.kind == 0]


def damage(folder: Path, *starts: int) -> None:
    """The pages that begin there."""
    hit = [(path, record) for path, record in pages(folder) if record.header.start in starts]
    assert {record.header.start for _, record in hit} == set(starts)
    for path, record in hit:
        flip(path, record.offset + record.header.payload_offset + 3)


def kept(model: Path, folder: Path, tokens: Tokens) -> tuple[Tokens, TurnFinished, int]:  # noqa: F811
    """A conversation on disk; its next prompt, what an engine that never left answers to that, tokens of a page."""
    with Driver(model, folder) as driver:
        history = tokens + driver.run("1", "c", tokens).generated
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
    with Driver(model, None) as cold:
        longer = history + Tokens.prompt(tokens.ids[:9])
        return longer, cold.run("1", "c", longer), size


def read_by_then(driver: Driver) -> bool:
    running = driver.client._service.running
    return running is not None and not running.prefetch.busy and running.cache.pool.used_bytes > 0


@pytest.mark.parametrize("focused", [False, True])
def test_one_notice_tells_what_is_really_computed_again_and_of_which_conversation(
    model: Path,  # noqa: F811
    tmp_path: Path,
    focused: bool,
) -> None:
    longer, cold, size = kept(model, tmp_path, prompt(LENGTH))
    damage(tmp_path, size, 4 * size, 7 * size)
    with Driver(model, tmp_path) as driver:
        if focused:
            driver.client.send(Focus(ConversationId("c"), longer))
        done = driver.run("2", "c", longer, history=len(longer) - 10)
        driver.state("c", longer)
        notices = [event for event in driver.events if isinstance(event, EngineNotice)]
    assert done.generated == cold.generated
    (notice,) = notices
    assert notice.conversation == "c"
    lost = [(page * size, (page + 1) * size) for page in (1, 4, 7)]
    words = ", ".join(f"{start:,} to {stop - 1:,}" for start, stop in lost)
    assert notice.why == f"Tokens {words} ({3 * size:,} in all): A checksum or the tokens do not agree."
    if not focused:  # else it is found in memory or not there at all
        assert [gap for gap in done.gaps if gap[1] <= lost[-1][1]] == lost, "that is what was computed again"


def test_damage_met_while_the_reader_looks_at_the_conversation(model: Path, tmp_path: Path) -> None:  # noqa: F811
    longer, cold, size = kept(model, tmp_path, prompt(LENGTH))
    damage(tmp_path, 3 * size, 6 * size)
    with Driver(model, tmp_path) as driver:
        driver.client.send(Focus(ConversationId("c"), longer))
        driver.state("c", longer)
        while not read_by_then(driver):
            pass
        done = driver.run("2", "c", longer, history=len(longer) - 10)
        assert done.generated == cold.generated
        assert (done.computed[0].tokens, done.computed[0].reason) == (2 * size, "damaged")


@pytest.mark.parametrize("found_before", [False, True])
def test_the_end_is_used_where_all_pages_before_it_are_lost(
    model: Path,  # noqa: F811
    tmp_path: Path,
    found_before: bool,
) -> None:
    """The end lies in another file than the pages where that was cut short."""
    longer, cold, size = kept(model, tmp_path, prompt(LENGTH))
    whole = (len(longer) - 10) // size
    damage(tmp_path, *(page * size for page in range(whole - 3, whole)))
    if found_before:
        with StoreTools(tmp_path) as tools:
            assert tools.verify(drop_damaged=True).damaged
    with Driver(model, tmp_path) as driver:
        done = driver.run("2", "c", longer, history=len(longer) - 10)
        assert done.generated == cold.generated
        assert (done.computed[0].tokens, done.computed[0].reason) == (3 * size, "damaged")
        again = driver.run("3", "c", longer, history=len(longer) - 10)
        assert again.generated == cold.generated


def test_damage_that_was_found_before(model: Path, tmp_path: Path) -> None:  # noqa: F811
    longer, cold, size = kept(model, tmp_path, prompt(LENGTH))
    damage(tmp_path, 3 * size)
    with StoreTools(tmp_path) as tools:
        assert tools.verify(drop_damaged=True).damaged
    with Driver(model, tmp_path) as driver:
        done = driver.run("2", "c", longer, history=len(longer) - 10)
        assert done.generated == cold.generated
        assert (done.computed[0].tokens, done.computed[0].reason) == (size, "damaged")


@pytest.mark.parametrize("lost", [(0,), (3, 4), (2, 6), (-2, -1)])
def test_damage_met_by_reading_ahead(model: Path, tmp_path: Path, lost: tuple[int, ...]) -> None:  # noqa: F811
    document = prompt(LENGTH)
    _, _, size = kept(model, tmp_path, document)
    damage(tmp_path, *(page % (LENGTH // size) * size for page in lost))
    with Driver(model, tmp_path) as driver:
        driver.client.send(PrefillDocument("d", document))
        read = driver.wait(lambda e: isinstance(e, DocumentRead))
        assert isinstance(read, DocumentRead)
        assert read.computed == len(lost) * size
        told = driver.wait(lambda e: isinstance(e, DocumentProgress))
        assert isinstance(told, DocumentProgress)
        assert (told.reused, told.done) == (LENGTH - read.computed, LENGTH)


def test_reading_ahead_goes_on_where_somebody_else_has_computed_the_lost_pages(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    document, compute = prompt(LENGTH), DocumentReader._compute
    _, _, size = kept(model, tmp_path, document)
    damage(tmp_path, *(page * size for page in range(3, 8)))

    def beside(reader: DocumentReader, job: Job, sequence: Sequence, slice_tokens: int) -> bool:
        done = compute(reader, job, sequence, slice_tokens)
        other = reader._cache.sequence(reader._cache.match(document))
        missing = slice(other.num_tokens, job.meets)
        if done and job.meets > other.num_tokens:
            ids, roles = document.ids[missing], document.roles[missing]
            other.reserve(len(ids))
            reader._runner.step([RowRun(other, ids, roles, other.num_tokens)])
            other.commit(ids, roles)
        other.release()
        return done

    monkeypatch.setattr(DocumentReader, "_compute", beside)
    with Driver(model, tmp_path) as driver:
        driver.client.send(PrefillDocument("d", document))
        read = driver.wait(lambda e: isinstance(e, DocumentRead))
        assert isinstance(read, DocumentRead)
        assert 0 < read.computed < 5 * size


def test_with_windows_it_costs_what_lies_behind_the_checkpoint_too(windows: Path, tmp_path: Path) -> None:  # noqa: F811
    """In front of the page the windows are kept at checkpoints only, and it cannot be computed without."""
    longer, cold, size = kept(windows, tmp_path / "kv", Tokens.prompt([3 + i % 290 for i in range(3000)]))
    checkpoint = 1024
    lost = checkpoint + 2 * size
    damage(tmp_path / "kv", lost)
    with Driver(windows, tmp_path / "kv") as driver:
        done = driver.run("2", "c", longer, history=len(longer) - 10)
        assert done.generated == cold.generated
        assert (done.computed[0].tokens, done.computed[0].reason) == (lost + size - checkpoint, "damaged")
    with Driver(windows, tmp_path / "kv") as driver:
        assert driver.run("3", "c", longer, history=len(longer) - 10).generated == cold.generated
