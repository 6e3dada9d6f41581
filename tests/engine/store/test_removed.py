"""The folder of the store, or a part of it, is removed or replaced while it is in use: saving comes back."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.store.index import Index
from engine.store.recovery import repair
from engine.store.segment import SegmentWriter
from tests.engine.kv.small import PAGE, append, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of

BEGUN = tokens_of(range(6 * PAGE + 5))
MORE = tokens_of(range(600, 600 + 2 * PAGE))


def remove(store: Path, what: str) -> None:
    if what == "index":
        for path in store.glob("index.sqlite*"):
            path.unlink()
    elif what == "files":
        for path in (store / "segments").iterdir():
            path.unlink()
    else:
        removed = store / "segments" if what == "segments" else store
        shutil.rmtree(removed.rename(store.with_name("removed")))  # at once: what is made anew meanwhile stays


@pytest.mark.parametrize("saved", [True, False])
def test_pins_outlive_the_folder(tmp_path: Path, saved: bool) -> None:
    store = tmp_path / "kv"
    with Opened(store) as opened:
        sequence = opened.converse("c", BEGUN)
        opened.converse("d", MORE).release()
        for name in "cd":
            opened.cache.conversations.pin(name, True)
        opened.cache.flush(240)
        remove(store, "all")
        append(sequence, MORE)
        opened.cache.save("c" if saved else "e", sequence)
        assert opened.cache.flush(240)
    with Opened(store) as opened:
        assert {name: head.pinned for name, head in opened.store.heads().items()} == {"c" if saved else "e": saved}
        opened.converse("d", MORE).release()
        opened.cache.flush(240)
        opened.store.refresh()
        assert opened.store.heads()["d"].pinned


def test_saving_comes_back_where_pins_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*given: object) -> None:
        raise sqlite3.OperationalError("database is locked")

    store = tmp_path / "kv"
    with Opened(store) as opened:
        sequence = opened.converse("c", BEGUN)
        opened.cache.conversations.pin("c", True)
        opened.cache.flush(240)
        remove(store, "all")
        monkeypatch.setattr("engine.store.pins._pin_again", locked)
        append(sequence, MORE)
        opened.cache.save("c", sequence)
        assert opened.cache.flush(240)
        assert any("database is locked" in notice.why for notice in opened.cache.notices())
    comes_back(store)


def comes_back(store: Path) -> None:
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(BEGUN + MORE))
        assert sequence.num_tokens == len(BEGUN + MORE)
        check_rows(sequence)
        assert set(opened.store.heads()) == {"c"}


@pytest.mark.parametrize("before", ["own segment", "read only"])
@pytest.mark.parametrize("what", ["segments", "all", "files", "index"])
def test_saving_comes_back_where_files_were_removed(tmp_path: Path, what: str, before: str) -> None:
    store = tmp_path / "kv"
    with Opened(store) as opened:
        opened.converse("c", BEGUN).release()
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(BEGUN))
        if before == "own segment":
            append(sequence, tokens_of(range(600, 604)))
            opened.cache.save("c", sequence)
            opened.cache.flush(240)
        remove(store, what)
        opened.store.stat()  # it does not fail
        append(sequence, tokens_of(range(600 + sequence.num_tokens - len(BEGUN), 600 + 2 * PAGE)))
        opened.cache.save("c", sequence)
        assert opened.cache.flush(240)
        assert opened.store.refused() == ""
        told = [notice.what for notice in opened.cache.notices()]
        removed = what in ("segments", "all") or (what, before) == ("files", "own segment")
        expected = ["removed"] * removed + ["missing"] * (what == "index")
        assert [word in text for word, text in zip(expected, told, strict=True)] == [True] * len(expected)
        assert opened.store.stat().bytes > 0
    if (what, before) != ("files", "read only"):  # nothing tells of those before they are read
        comes_back(store)


@pytest.mark.parametrize("method", [SegmentWriter.append, SegmentWriter.sync, Index.publish])
def test_what_was_being_written_when_the_folder_went_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: Callable[..., object]
) -> None:
    store = tmp_path / "kv"
    owner = Index if method is Index.publish else SegmentWriter

    def removed_after(*given: object, **named: object) -> object:
        done = method(*given, **named)
        if next(calls) == (4 if method is SegmentWriter.append else 0):
            remove(store, "all")
        return done

    calls = itertools.count()
    with Opened(store) as opened:
        monkeypatch.setattr(owner, method.__name__, removed_after)
        opened.converse("c", BEGUN + MORE).release()
    comes_back(store)


def test_an_index_that_another_process_made_anew_is_taken_over(tmp_path: Path) -> None:
    store = tmp_path / "kv"
    with Opened(store) as opened:
        opened.converse("c", BEGUN).release()
        repair(store / "index.sqlite", store / "segments", anew=True)
        opened.converse("c", BEGUN + MORE).release()
        assert not opened.cache.notices()
    comes_back(store)
