"""The disk budget: leaves go first, least recently used first; dead bytes come back; nothing live is lost."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

import pytest

from engine.store import writer
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of

DOCUMENT = tokens_of(range(10 * PAGE))
RECORD = 8192  # a page of the small layout: header and payload


def questions(number: int, pages: int = 4):  # type: ignore[no-untyped-def]
    return DOCUMENT + tokens_of(range(1000 * number, 1000 * number + pages * PAGE))


def test_the_store_stays_within_its_budget(tmp_path: Path) -> None:
    budget = 40 * RECORD
    with Opened(tmp_path, disk_budget=budget) as opened:
        for number in range(1, 20):
            opened.converse(f"c{number}", questions(number)).release()
            opened.cache.flush()
            size = sum(path.stat().st_size for path in (tmp_path / "segments").iterdir())
            assert size <= budget
        assert not opened.cache.notices()
    with Opened(tmp_path, disk_budget=budget) as opened:
        assert opened.cache.match(questions(19)).tokens == len(questions(19))
        oldest = opened.cache.match(questions(1))
        assert len(DOCUMENT) <= oldest.tokens < len(questions(1)), "the shared document is nobody's leaf"
        assert oldest.missing_reason == "evicted"
        sequence = restore(opened.cache, oldest)
        check_rows(sequence)
    with StoreTools(tmp_path) as tools:
        assert not tools.verify().damaged


def test_of_what_is_larger_than_the_budget_the_beginning_stays(tmp_path: Path) -> None:
    budget, long = 20 * RECORD, tokens_of(range(45 * PAGE + 3))
    with Opened(tmp_path, disk_budget=budget) as opened:
        opened.converse("small", questions(1, 2)).release()
        opened.converse("long", long).release()
        assert "budget" in opened.cache.notices()[0].why
    with Opened(tmp_path, disk_budget=budget) as opened:
        found = opened.cache.match(long)
        assert 10 * PAGE <= found.tokens < len(long)
        check_rows(restore(opened.cache, found))
    with contextlib.closing(sqlite3.connect(tmp_path / "index.sqlite")) as db:
        query = "SELECT count(*) FROM records WHERE start > 0 AND parent NOT IN (SELECT key FROM records)"
        assert db.execute(query).fetchone() == (0,), "nothing is kept behind a gap"


def test_a_pinned_conversation_stays(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        for number in (1, 2, 3):
            opened.converse(f"c{number}", questions(number) + tokens_of([5])).release()
    with StoreTools(tmp_path) as tools:
        assert tools.pin("c1", True)
        assert not tools.pin("unknown", True)
        tools.gc(0)
        assert tools.stat().pages == 14
        (entry,) = (entry for entry in tools.ls() if entry.pinned)
        assert entry.tokens_saved == entry.tokens
        tools.pin("c1", False)
        assert tools.gc(0).bytes_after == 0


def test_compaction_keeps_what_lives_and_frees_the_rest(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        for number in range(1, 6):
            opened.converse(f"c{number}", questions(number, 20)).release()
        for number in range(1, 5):
            opened.cache.drop(f"c{number}", disk=True)
    with StoreTools(tmp_path) as tools:
        before = tools.stat()
        done = tools.gc(1 << 30)
        assert done.compacted == 1
        assert done.bytes_after < 0.5 * done.bytes_before
        assert tools.stat().pages == before.pages == 30
        assert not tools.verify().damaged
    with Opened(tmp_path) as opened:
        sequence = restore(opened.cache, opened.cache.match(questions(5, 20)))
        assert sequence.num_tokens == len(questions(5, 20))
        check_rows(sequence)


def test_a_reader_survives_compaction_by_another(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        for number in range(1, 6):
            opened.converse(f"c{number}", questions(number, 20)).release()
        for number in range(1, 5):
            opened.cache.drop(f"c{number}", disk=True)
    with Opened(tmp_path) as reader:
        found = reader.cache.match(questions(5, 20))
        with StoreTools(tmp_path) as tools:
            assert tools.gc(1 << 30).compacted == 1
        sequence = restore(reader.cache, found)
        assert sequence.num_tokens == len(questions(5, 20))
        check_rows(sequence)


def test_what_another_process_evicted_is_written_again(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        sequence = opened.converse("c", questions(1))
        opened.store._writer.submit(writer.Job(task=opened.store._writer.rotate))
        opened.cache.flush()
        with StoreTools(tmp_path) as tools:
            tools.gc(0)
        opened.cache.save("c", sequence)
    with Opened(tmp_path) as opened:
        assert opened.cache.match(questions(1)).tokens == len(questions(1))


def test_segments_are_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "SEGMENT_BYTES", 6 * RECORD)
    with Opened(tmp_path) as opened:
        opened.converse("c", questions(1)).release()
        assert len(list((tmp_path / "segments").iterdir())) >= 3
    with Opened(tmp_path) as opened:
        sequence = restore(opened.cache, opened.cache.match(questions(1)))
        assert sequence.num_tokens == len(questions(1))
        check_rows(sequence)


def test_many_saves_of_one_conversation_leave_one_tail(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        history = DOCUMENT
        for number in range(12):
            history += tokens_of([number, number + 1])
            sequence = opened.cache.sequence(opened.cache.match(history))
            opened.converse("c", history).release()
            sequence.release()
            time.sleep(0.001)
    with StoreTools(tmp_path) as tools:
        assert tools.stat().tails <= 1
        (entry,) = tools.ls()
        assert entry.tokens == entry.tokens_saved == len(history)


def test_what_pins_hold_above_the_budget_is_not_written_again(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("c1", questions(1)).release()
        opened.cache.conversations.pin("c1", True)
    with StoreTools(tmp_path) as tools:
        tools.gc(RECORD)
        before = sorted(path.name for path in (tmp_path / "segments").iterdir())
        assert tools.gc(RECORD).compacted == 0
        assert tools.gc(1 << 30).compacted == 0
    for number in (2, 3):
        with Opened(tmp_path, disk_budget=RECORD) as opened:
            opened.converse(f"c{number}", questions(number)).release()
            assert opened.store.bytes_written == 0
    assert sorted(path.name for path in (tmp_path / "segments").iterdir()) == before
