"""Looking at a conversation's pages, comparing two, and moving one to another store."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.kv.layout import PageLayout
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, check_rows, small_layout
from tests.engine.store.opened import Opened, restore, tokens_of

LAYOUT: PageLayout = small_layout(windows=(1,))
DOCUMENT = tokens_of(range(3 * PAGE))
FIRST = DOCUMENT + tokens_of(range(100, 100 + 2 * PAGE + 3))
SECOND = DOCUMENT + tokens_of([100, 101, 555, 556])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Opened(tmp_path / "store", LAYOUT) as opened:
        opened.converse("first", FIRST).release()
        opened.converse("second", SECOND).release()
    return tmp_path / "store"


def test_show_lists_the_pages_in_order(store: Path) -> None:
    with StoreTools(store) as tools:
        entry = tools.show("first")
        with pytest.raises(StoreError):
            tools.show("unknown")
    assert entry.tokens == entry.tokens_saved == len(FIRST)
    assert [page.start for page in entry.pages] == [0, 8, 16, 24, 32, 40]
    assert [page.tail for page in entry.pages] == [False] * 5 + [True]
    assert [page.users for page in entry.pages] == [1, 1, 1, 0, 0, 0]
    assert entry.bytes == sum(page.bytes for page in entry.pages)


def test_diff_names_the_first_token_that_differs(store: Path) -> None:
    with StoreTools(store) as tools:
        found = tools.diff("first", "second")
        same = tools.diff("first", "first")
    assert (found.position, found.first_token, found.second_token) == (3 * PAGE + 2, 102, 555)
    assert found.shared_tokens == 3 * PAGE + 2
    assert same.position == -1
    assert same.shared_tokens == len(FIRST)


def test_what_was_read_under_several_types_is_compared_where_both_were(store: Path) -> None:
    """The first went on as another model last."""
    with Opened(store, LAYOUT, fingerprint=b"as q8".ljust(32, b"\0")) as opened:
        opened.converse("first", FIRST + tokens_of([1, 2])).release()
        opened.converse("alone", SECOND).release()
    with StoreTools(store) as tools:
        found = tools.diff("first", "second")
        assert (found.shared_tokens, found.first_tokens, found.second_tokens) == (26, len(FIRST), len(SECOND))
        with pytest.raises(StoreError, match="has read both"):
            tools.diff("second", "alone")


def test_an_exported_state_comes_back_in_another_store(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "first.pagekeep"
    with StoreTools(store) as tools:
        sent = tools.export_state("first", file)
        with pytest.raises(StoreError, match="exists"):
            tools.export_state("first", file)
        kept = tools.ls()[0]
        with pytest.raises(StoreError, match="no folder"):
            tools.export_state("first", tmp_path / "nowhere" / "x")
    assert (sent.tokens, sent.bytes) == (len(FIRST), file.stat().st_size)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".seg"]
    with StoreTools(tmp_path / "other") as tools:
        taken = tools.import_state(file)
        assert taken.new == taken.records == 11  # six of each group; no anchor looks back on one
        written, used = tools.stat().bytes_written, tools.stat().live_bytes
        assert written >= used > 0, "what was taken in was written too"
        assert tools.import_state(file).new == 0
        assert tools.stat().bytes_written - written == 4096, "the end alone"
        assert not tools.verify().damaged
        entry = tools.ls()[0]
        assert entry.conversation == "first"
        assert (entry.model, entry.kv_type) == ("small", kept.kv_type)
    with Opened(tmp_path / "other", LAYOUT) as opened:
        sequence = restore(opened.cache, opened.cache.match(FIRST))
        assert sequence.num_tokens == len(FIRST)
        check_rows(sequence)


def test_an_index_of_a_newer_version_says_so_and_is_left_alone(store: Path) -> None:
    with closing(sqlite3.connect(store / "index.sqlite")) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError) as told:
        StoreTools(store)
    assert "version 99" in told.value.why
    assert "Update Pagekeep" in told.value.next
    with pytest.raises(StoreError) as told, Opened(store, LAYOUT):
        pass
    assert "Update Pagekeep" in told.value.next
    with closing(sqlite3.connect(store / "index.sqlite")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)
        assert db.execute("SELECT count(*) FROM heads").fetchone() == (2,)


def test_what_is_here_already_is_not_written_again(store: Path, tmp_path: Path) -> None:
    with StoreTools(store) as tools:
        tools.export_state("first", tmp_path / "file")
    with Opened(tmp_path / "other", LAYOUT) as opened:
        opened.converse("mine", SECOND).release()
    with StoreTools(tmp_path / "other") as tools:
        taken = tools.import_state(tmp_path / "file")
    assert (taken.records, taken.new) == (11, 6)


def test_an_older_export_leaves_a_conversation_that_went_on_where_it_is(store: Path, tmp_path: Path) -> None:
    later = FIRST + tokens_of([7, 8, 9])
    with StoreTools(store) as tools:
        tools.export_state("first", tmp_path / "file")
    with Opened(store, LAYOUT) as opened:
        opened.converse("first", later).release()
    with StoreTools(store) as tools:
        tools.import_state(tmp_path / "file")
        (entry,) = (entry for entry in tools.ls() if entry.conversation == "first")
        assert entry.tokens == entry.tokens_saved == len(later)
    with Opened(store, LAYOUT) as opened:
        assert opened.cache.match(later).tokens == len(later)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_or_cut_file_is_refused_whole(store: Path, tmp_path: Path, seed: int) -> None:
    chance, file = random.Random(seed), tmp_path / "file"
    with StoreTools(store) as tools:
        tools.export_state("first", file)
        places = [(page.start, page) for page in tools.show("first").pages]
    data = bytearray(file.read_bytes())
    if seed % 2:
        data = data[: chance.randrange(len(data) - 4096)]
    else:  # a bit of a payload: of a page each 3 blocks are header, payload
        place = 4096 + chance.randrange(len(places)) * 2 * 8192 + 4096 + chance.randrange(1000)
        data[min(place, len(data) - 9000)] ^= 1
    file.write_bytes(bytes(data))
    with StoreTools(tmp_path / "other") as tools:
        with pytest.raises(StoreError):
            tools.import_state(file)
        assert tools.stat().pages == 0


def test_a_state_with_a_missing_page_is_not_exported(store: Path, tmp_path: Path) -> None:
    with StoreTools(store) as tools:
        page = tools.show("first").pages[2]
        with (store / "segments" / page.segment).open("r+b") as segment:
            segment.seek(page.offset + 4096)
            segment.write(b"\xaa" * 64)
        with pytest.raises(StoreError, match="damaged"):
            tools.export_state("first", tmp_path / "file")
    assert not (tmp_path / "file").exists()
    assert not list(tmp_path.glob("*.seg"))
