"""Idle conversations leave memory, the account of bytes agrees with what there is, heads outlive the index."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from engine.kv.value import Costs
from engine.messages import scratch_state
from engine.store import writer
from engine.store.tools import Forgotten, StoreTools
from tests.engine.kv.small import PAGE, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of

DOCUMENT = tokens_of(range(5 * PAGE))
MINE = DOCUMENT + tokens_of(range(100, 100 + 3 * PAGE + 2))
OTHER = DOCUMENT + tokens_of(range(300, 300 + 2 * PAGE + 1))


def test_idle_conversations_leave_memory_but_not_the_one_in_use(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("mine", MINE).release()
        opened.converse("other", OTHER).release()
        assert opened.cache.retire(60.0) == 0, "used a moment ago"
        freed = opened.cache.retire(0.0, keep=["other"])
        assert freed == 4 * opened.cache.pool.stride
        assert opened.cache.match(MINE).memory_tokens == len(DOCUMENT)
        assert opened.cache.match(OTHER).memory_tokens == len(OTHER)
        sequence = restore(opened.cache, opened.cache.match(MINE))
        assert sequence.num_tokens == len(MINE)
        check_rows(sequence)
        assert opened.cache.retire(0.0) == 3 * opened.cache.pool.stride, "what a sequence holds stays"


def test_pinned_conversations_stay_in_memory_and_on_disk(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("mine", MINE).release()
        opened.converse("other", OTHER).release()
        opened.cache.conversations.pin("mine", True)
        opened.cache.retire(0.0)
        assert opened.cache.match(MINE).memory_tokens == len(MINE)
        opened.converse("mine", MINE + tokens_of([7])).release()
        assert opened.cache.conversations.heads()["mine"].pinned, "the next turn keeps the pin"
    with StoreTools(tmp_path) as tools:
        tools.gc(0)
        (entry,) = (entry for entry in tools.ls() if entry.pinned)
        assert entry.conversation == "mine"
        assert entry.tokens_saved == entry.tokens == len(MINE) + 1


def test_the_account_is_what_the_process_holds(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        sequence = opened.converse("mine", MINE)
        assert opened.cache.match(MINE).tokens == len(MINE)
        opened.store.refresh()
        stat = opened.cache.stat()
        assert stat.used_bytes == 9 * opened.cache.pool.stride
        assert stat.used_bytes <= stat.reserved_bytes <= stat.total_bytes
        assert stat.index_bytes > 9 * 2 * 16
        assert stat.evictable_bytes == 0
        sequence.release()
        opened.cache.evict(1 << 30)
        assert opened.cache.stat().used_bytes == 0


def test_written_bytes_are_those_of_the_segments(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("mine", MINE).release()
        size = sum(path.stat().st_size for path in (tmp_path / "segments").iterdir())
        assert opened.store.bytes_written == size - 4096
    with StoreTools(tmp_path) as tools:
        assert tools.stat().bytes_written == size - 4096


def test_the_disk_keeps_what_is_dear_to_compute(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.cache.judge_by(Costs(0.01, 10.0))
        opened.converse("deep", tokens_of(range(500, 500 + 20 * PAGE))).release()
        opened.converse("shallow", tokens_of(range(900, 900 + 4 * PAGE))).release()
    with StoreTools(tmp_path) as tools:
        tools._db.execute("UPDATE records SET used = ?", (time.time() - 5000.0,))
        tools.gc(sum(path.stat().st_size for path in (tmp_path / "segments").iterdir()) - 3 * 8192)
        saved = {entry.conversation: entry.tokens_saved for entry in tools.ls()}
    assert saved["deep"] == 20 * PAGE
    assert saved["shallow"] < 4 * PAGE


def test_what_a_wrong_clock_dates_in_the_future_goes_before_what_is_used_now(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("future", OTHER).release()
        opened.converse("now", MINE).release()
    with StoreTools(tmp_path) as tools:
        future = {page.key for page in tools.show("future").pages}
        mine = {page.key for page in tools.show("now").pages}
        for key in future - mine:
            tools._db.execute("UPDATE records SET used = ? WHERE key = ?", (time.time() + 4e7, bytes.fromhex(key)))
        tools.gc(tools.stat().live_bytes - 1)
        left = {entry.conversation: entry.tokens_saved for entry in tools.ls()}
    assert left["now"] == len(MINE)
    assert left["future"] < len(OTHER)


def test_heads_outlive_compaction_and_the_index(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("mine", MINE).release()
        for number in range(6):
            first = 700 * (number + 1)
            opened.converse(f"gone{number}", DOCUMENT + tokens_of(range(first, first + 9 * PAGE))).release()
        opened.store._writer.submit(writer.Job(task=opened.store._writer.rotate))
        opened.converse("twin", tokens_of(range(5 * PAGE))).release()  # a head without any record of its own
        for number in range(6):
            opened.cache.drop(f"gone{number}", disk=True)
    with StoreTools(tmp_path) as tools:
        assert tools.gc(1 << 30).compacted
        assert {entry.conversation for entry in tools.ls()} == {"mine", "twin"}
    for path in tmp_path.glob("index.sqlite*"):
        os.unlink(path)
    with Opened(tmp_path) as opened:
        assert {"mine", "twin"} <= set(opened.cache.conversations.heads())
        sequence = restore(opened.cache, opened.cache.match(MINE))
        assert sequence.num_tokens == len(MINE)
        check_rows(sequence)


def names_after_the_index_is_lost(folder: Path) -> set[str]:
    for path in folder.glob("index.sqlite*"):
        path.unlink()
    with Opened(folder) as opened:
        return set(opened.cache.conversations.heads())


@pytest.mark.parametrize("from_outside", [True, False])
def test_what_was_forgotten_does_not_come_back_with_a_new_index(tmp_path: Path, from_outside: bool) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("mine", MINE).release()
        opened.converse("other", OTHER).release()
    if from_outside:
        with StoreTools(tmp_path) as tools:
            assert tools.forget("mine").models == 1
            assert tools.forget("mine") == Forgotten(0, 0, 0)
    else:
        with Opened(tmp_path) as opened:
            opened.cache.drop("mine", disk=True)
    for _ in range(2):  # tidying leaves the record where it is still needed
        with StoreTools(tmp_path) as tools:
            tools.gc(1 << 30)
        assert names_after_the_index_is_lost(tmp_path) == {"other"}
    with Opened(tmp_path) as opened:
        opened.converse("mine", MINE).release()
    assert names_after_the_index_is_lost(tmp_path) == {"mine", "other"}


def test_an_end_in_a_later_file_is_forgotten_too(tmp_path: Path) -> None:
    """The one who forgets has begun its file before the other wrote the conversation's end."""
    with Opened(tmp_path) as first, Opened(tmp_path) as second:
        first.converse("other", OTHER).release()
        second.converse("mine", MINE).release()
        first.cache.drop("mine", disk=True)
        assert first.cache.flush(240)
    assert names_after_the_index_is_lost(tmp_path) == {"other"}


def test_what_the_application_drops_itself_leaves_no_reason(tmp_path: Path) -> None:
    """A reason for each of its pages would push out those that a reader may ask for."""
    with Opened(tmp_path) as opened:
        for name, reason in ((scratch_state("survey", 7), ""), (scratch_state("summary", "c"), ""), ("c", "dropped")):
            sequence = opened.converse(name, MINE)
            key = sequence.last_key
            sequence.release()
            opened.store.forget(name, True)
            assert opened.store.flush(240)
            gone = opened.store.gone(key)
            assert (gone.reason if gone else "") == reason
