"""What is done with a store from the command line leaves its line in the operation log; and what stands there."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from engine.kv.log import KvLog, read_log
from engine.store.budget import Collected, collect
from engine.store.rows import transaction
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE
from tests.engine.store.opened import Opened, tokens_of
from tests.engine.store.test_damage import flip, segment

LONG = tokens_of(range(5 * PAGE + 3))
OTHER = tokens_of(range(100, 100 + 2 * PAGE))


def stored(folder: Path) -> None:
    with Opened(folder) as opened:
        opened.converse("long", LONG).release()
        opened.converse("other", OTHER).release()


def logged(folder: Path, operation: str) -> dict[str, Any]:
    (entry,) = (entry for entry in read_log(folder, 100) if entry["operation"] == operation)
    return entry


def test_every_operation_has_a_line_with_bytes_counts_and_reason(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    stored(folder)
    with StoreTools(folder, "info") as tools:
        whole = tools.stat().live_bytes
        before = tools.show("long")
        tools.pin("other", True)
        tools.pin("other", False)
        tools.pin("other", True)
        sent = tools.export_state("long", tmp_path / "file")
        tools.verify(drop_damaged=True)
        tools.gc(whole - 1)
        left = tools.show("long")
        tools.import_state(tmp_path / "file")
        removed = tools.forget("long")
    entries = read_log(folder, 100)
    assert [entry["operation"] for entry in entries] == [
        "pin", "unpin", "pin", "export", "verify", "evict", "gc", "import", "remove",
    ]  # fmt: skip
    assert all(entry["bytes"] > 0 and entry["reason"] for entry in entries)
    assert logged(folder, "unpin")["tokens"] == len(OTHER)
    assert (logged(folder, "export")["bytes"], logged(folder, "export")["file"]) == (sent.bytes, "file")
    assert (logged(folder, "verify")["bytes"], logged(folder, "verify")["damaged"]) == (whole, 0)
    assert logged(folder, "gc")["evicted"] == len(before.pages) - len(left.pages) > 0
    lost = before.tokens_saved - left.tokens_saved, before.bytes - left.bytes
    assert (logged(folder, "evict")["tokens"], logged(folder, "evict")["bytes"]) == lost
    assert logged(folder, "evict")["conversation"] == "long"
    assert (left.tokens, left.tokens_saved) == (len(LONG), PAGE * len(left.pages)), "what is left of it is told"
    assert logged(folder, "remove")["bytes"] == removed.bytes == before.bytes


def test_a_page_that_is_taken_out_is_named(tmp_path: Path) -> None:
    stored(tmp_path)
    flip(segment(tmp_path), 4096 + 4096 + 8)
    with StoreTools(tmp_path, "warn") as tools:
        (damage,) = tools.verify(drop_damaged=True).damaged
    entry = logged(tmp_path, "quarantine")
    assert (entry["start"], entry["tokens"], entry["reason"]) == (damage.start, damage.tokens, damage.why)
    assert len(read_log(tmp_path, 100)) == 1, "the level leaves out the rest"


def test_what_the_engine_evicts_and_takes_out_is_logged_too(tmp_path: Path) -> None:
    with Opened(tmp_path, disk_budget=70_000, log=KvLog(tmp_path)) as opened:
        for number in range(4):
            opened.converse(f"c{number}", tokens_of(range(100 * number, 100 * number + 4 * PAGE))).release()
    evictions = [entry for entry in read_log(tmp_path, 100) if entry["operation"] == "evict"]
    assert evictions
    assert "disk budget of 0.1 MB" in evictions[0]["reason"]
    assert sum(entry["evicted"] for entry in evictions) > 0


def test_the_parts_of_the_store_add_up_to_the_whole(tmp_path: Path) -> None:
    stored(tmp_path)
    with Opened(tmp_path) as opened:
        opened.store.note_check(True)
        opened.store.note_check(False)
    with StoreTools(tmp_path) as tools:
        tools.forget("other")
        stat = tools.stat()
    assert stat.live_bytes + stat.dead_bytes + stat.index_bytes == stat.bytes_on_disk
    assert sum(share.bytes for share in stat.shares) == stat.live_bytes
    (share,) = stat.shares
    assert (share.pages, share.tails, share.states, share.kv_type) == (5, 1, 0, "f16")
    assert (stat.pages_checked, stat.pages_wrong) == (2, 1)


def saved_beside(folder: Path, conversation: str, start: int) -> None:
    with Opened(folder) as opened:
        opened.converse(conversation, tokens_of(range(start, start + 6 * PAGE))).release()


def test_what_others_do_beside_gc_is_not_its_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path)

    def beside(db: sqlite3.Connection, *given: Any, **named: Any) -> Collected:
        done = collect(db, *given, **named)
        with StoreTools(tmp_path) as window:
            window.forget("long")
        saved_beside(tmp_path, "other", 100)
        return done

    monkeypatch.setattr("engine.store.tools.collect", beside)
    with StoreTools(tmp_path, "info") as tools:
        assert tools.gc(tools.stat().live_bytes - 1).evicted
    entries = read_log(tmp_path, 100)
    assert [entry["operation"] for entry in entries] == ["gc"]


def test_forgetting_counts_what_it_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(tmp_path)

    def late(db: sqlite3.Connection) -> transaction:
        saved_beside(tmp_path, "third", 500)
        return transaction(db)

    with StoreTools(tmp_path) as tools:
        kept = tools.show("long")
        monkeypatch.setattr("engine.store.tools.transaction", late)
        done = tools.forget("long")
    assert (done.records, done.bytes) == (len(kept.pages), kept.bytes)


def test_a_segment_that_has_gone_is_no_debt(tmp_path: Path) -> None:
    stored(tmp_path)
    with StoreTools(tmp_path) as tools:
        segment(tmp_path).unlink()
        assert tools.stat().dead_bytes == 0


def test_entries_come_by_time_whoever_wrote_them_first(tmp_path: Path) -> None:
    for at in (3, 1, 2):
        log = KvLog(tmp_path)
        log.add("info", "save", at=float(at))
        log.flush()
    assert [entry["at"] for entry in read_log(tmp_path, 2)] == [2, 3]
