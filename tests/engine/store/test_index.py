"""The index as threads and processes use it at once: what one changes beside a look-up of another."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from engine.collector import collector_at_rest
from engine.kv.keys import Key
from engine.store.opening import INDEX_NAME
from engine.store.rows import move_record, transaction
from engine.store.schema import connect
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE
from tests.engine.store.opened import Opened, tokens_of

LONG = tokens_of(range(5 * PAGE + 3))


class Afterwards:
    """A lock; once it is let go the first time, `then` happens."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._then = [then]

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if self._then:
            self._then.pop()()


def test_a_look_up_keeps_nothing_older_than_a_refresh_beside_it(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        page = opened.converse("c", LONG).pages[0]
        index = opened.store._index
        index.refresh()
        before = index.find(page.key)
        index._records.clear()

        def moved() -> None:
            with closing(connect(tmp_path / INDEX_NAME)) as other, transaction(other) as db:
                query = "SELECT seq, segment, offset FROM records WHERE key = ?"
                seq, segment, offset = db.execute(query, (page.key,)).fetchone()
                move_record(db, seq, segment, offset + 4096)
            index.refresh()

        index._lock = Afterwards(moved)
        index.find(page.key)
        assert index.find(page.key).place.offset == before.place.offset + 4096


def test_what_is_hidden_beside_a_look_up_does_not_come_back(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG).release()
    with Opened(tmp_path) as opened:
        index = opened.store._index
        key = next(Key(found) for found in index._parents)
        hiding = threading.Thread(target=index.hide, args=(key,))

        def beside(statement: str) -> None:
            if not hiding.ident:
                hiding.start()
                hiding.join(0.2)  # it may have to wait for the look-up

        index._reader.set_trace_callback(beside)
        index.find(key)
        hiding.join()
        assert index.find(key) is None
        assert index.parent(key) is None


def test_where_the_log_of_removals_is_too_short_only_what_changed_counts_as_taken_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever uses a page that was taken out reads all of it again: not the gigabytes that nobody touched."""
    monkeypatch.setattr("engine.store.rows._MAX_REMOVED", 1)
    with Opened(tmp_path) as opened:
        kept, gone = opened.converse("kept", LONG).pages, opened.converse("gone", tokens_of(range(90, 150))).pages
        index = opened.store._index
        index.refresh()
        index.taken_out()
        with StoreTools(tmp_path) as tools:
            tools.forget("gone")
        with closing(connect(tmp_path / INDEX_NAME)) as other, transaction(other) as db:
            (left,) = db.execute("SELECT count(*) FROM removed").fetchone()
            seq, segment, offset = db.execute(
                "SELECT seq, segment, offset FROM records WHERE key = ?", (kept[2].key,)
            ).fetchone()
            move_record(db, seq, segment, offset)
        assert left == 1, "the log does not say which"
        assert index.refresh()
        taken_out = {*index.taken_out()}
        assert {page.key for page in gone} < taken_out, "and its end"
        assert taken_out & {page.key for page in kept} == {kept[2].key}, "written anew meanwhile"
        assert all(index.find(page.key) for page in kept)
        assert not any(index.find(page.key) for page in gone)


def test_rows_that_are_read_together_are_those_that_are_read_alone(tmp_path: Path) -> None:
    """Pages and tails of two segments, under two labels, in turns: whichever is asked for first."""
    for number in range(2):
        with Opened(tmp_path) as opened:
            for turn in range(1, 4):
                text = tokens_of(range(1000 * number, 1000 * number + turn * (2 * PAGE + 3)))
                opened.converse(f"c{number}", text).release()
                opened.converse(f"twin{number}{turn}", text).release()  # keeps the tail
            with closing(connect(tmp_path / INDEX_NAME)) as other:
                other.execute("UPDATE records SET numerics = 'other' WHERE seq % 5 = 0")
    with Opened(tmp_path) as opened:
        index = opened.store._index
        keys = [Key(found) for found in index._parents]
        alone = {key: index._following.one(key) for key in keys}
        assert len({record.place.segment for record in alone.values()}) == 2
        assert {record.tail for record in alone.values()} == {True, False}
        for first in (*keys, None):
            index._records.clear()
            if first:
                index.find(first)
            assert {key: index.find(key) for key in keys} == alone


def test_a_long_prefix_is_read_a_hundred_rows_at_a_time(tmp_path: Path) -> None:
    pages = 250
    with Opened(tmp_path) as opened:
        opened.converse("c", tokens_of(range(pages * PAGE))).release()
    with Opened(tmp_path) as opened:
        asked: list[str] = []
        index = opened.store._index
        index._reader.set_trace_callback(lambda text: asked.append(text) if "FROM records" in text else None)
        assert opened.cache.match(tokens_of(range(pages * PAGE))).disk_tokens == pages * PAGE
        assert len(asked) == 3
        assert sum("numerics, segment" in text for text in asked) == 1  # the others ask for what differs alone


def test_after_few_objects_young_cycles_still_go_soon() -> None:
    gc.collect()
    cycle = Cycle()
    gone = weakref.ref(cycle)
    with collector_at_rest():
        del cycle
    gc.collect(0)
    assert gone() is None


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_what_was_made_while_the_collector_rested_is_not_walked_through_at_once() -> None:
    seen: list[str] = []
    gc.collect()
    try:
        gc.callbacks.append(lambda phase, info: seen.append(phase))
        with collector_at_rest():
            kept = [(number,) for number in range(5000)]
        more = [[] for _ in range(50)]
    finally:
        gc.callbacks.pop()
    assert len(kept) + len(more) == 5050
    assert not seen
    assert gc.isenabled()
    assert gc.is_tracked(kept)
    assert gc.get_freeze_count() == 0
