"""A page that was lost within a conversation: what is in front of it counts, stays where pinned, and outlives what is
behind; what became of it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.messages import Tokens
from engine.store.checking import Lost
from engine.store.eviction import evict
from engine.store.holes import holes
from engine.store.segment import scan
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of
from tests.engine.store.test_damage import LONG, flip, segment

OTHER = Tokens(LONG.ids[: 2 * PAGE], LONG.roles[: 2 * PAGE]) + tokens_of(range(200, 200 + PAGE + 2))
BEGINNING = Tokens(LONG.ids[: 3 * PAGE], LONG.roles[: 3 * PAGE])


def damaged(folder: Path, *numbers: int) -> None:
    """The conversation "c" without those pages."""
    with Opened(folder) as opened:
        opened.converse("c", LONG).release()
    pages = [found for found in scan(segment(folder), 0) if found.header.kind == 0]
    for number in numbers:
        flip(segment(folder), pages[number].offset + pages[number].header.payload_offset)
    with StoreTools(folder) as tools:
        found = tools.verify(drop_damaged=True).damaged
        assert [(one.start, one.conversations) for one in found] == [(n * PAGE, ("c",)) for n in numbers]
        assert not tools.verify().lost, "it was told when it was taken out"


def saved(folder: Path, conversation: str = "c") -> int:
    with StoreTools(folder) as tools:
        return next(entry.tokens_saved for entry in tools.ls() if entry.conversation == conversation)


def comes_back(folder: Path, tokens: int) -> None:
    """So much is used, and after the next question everything is there again."""
    with Opened(folder) as opened:
        sequence = restore(opened.cache, opened.cache.match(LONG))
        assert sequence.num_tokens == tokens
        check_rows(sequence)
        sequence.release()
        opened.converse("c", LONG).release()
    with Opened(folder) as opened:
        whole = restore(opened.cache, opened.cache.match(LONG))
        assert whole.num_tokens == len(LONG)
        check_rows(whole)
    with StoreTools(folder) as tools:
        report = tools.verify()
        assert (report.damaged, report.lost, holes(tools._db)) == ((), (), {})


@pytest.mark.parametrize("with_tools", [False, True])
def test_files_that_are_gone_are_told_once(tmp_path: Path, with_tools: bool) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG).release()
    segment(tmp_path).unlink()
    told = list[str]()
    for _ in range(2):
        if with_tools:
            with StoreTools(tmp_path) as tools:
                told += [notice.why for notice in tools.notices]
        else:
            with Opened(tmp_path) as opened:
                told += [notice.why for notice in opened.cache.notices()]
    assert told == [f"{len(LONG):,} tokens: Their file is gone."]


@pytest.mark.parametrize("numbers", [(2,), (0,), (5,), (2, 3), (1, 4)])
def test_what_is_in_front_counts_and_is_pinned(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    damaged(tmp_path, *numbers)
    with StoreTools(tmp_path) as tools:
        shown = tools.show("c")
        assert shown.tokens_saved == saved(tmp_path) == numbers[0] * PAGE
        assert [page.start for page in shown.pages] == [n * PAGE for n in range(7) if n not in numbers]
        tools.pin("c", True)
        tools.gc(0)
        assert tools.stat().pinned_bytes == tools.stat().live_bytes == shown.bytes
        assert tools.show("c").pages[0].start == shown.pages[0].start
    comes_back(tmp_path, numbers[0] * PAGE)


def test_what_is_behind_is_evicted_first(tmp_path: Path) -> None:
    damaged(tmp_path, 2)
    left = []
    with StoreTools(tmp_path) as tools:
        while pages := tools.show("c").pages:
            left.append([page.start // PAGE for page in pages])
            assert saved(tmp_path) == min(2, len(pages)) * PAGE
            assert evict(tools._db, 1) == 1
        assert not holes(tools._db)
    assert left == [[0, 1, 3, 4, 5, 6], [0, 1, 3, 4, 5], [0, 1, 3, 4], [0, 1, 3], [0, 1], [0]]
    comes_back(tmp_path, 0)


@pytest.mark.parametrize("first", ["c", "other"])
def test_forgetting_goes_on_in_front_of_it_but_not_where_others_go(tmp_path: Path, first: str) -> None:
    damaged(tmp_path, 2)
    with Opened(tmp_path) as opened:
        opened.converse("other", OTHER).release()
    with StoreTools(tmp_path) as tools:
        tools.forget(first)
        (entry,) = tools.ls()
        assert entry.tokens_saved == (len(OTHER) if first == "c" else 2 * PAGE)
        tools.forget(entry.conversation)
        assert tools.stat().live_bytes == 0
        assert not holes(tools._db)


def test_a_lost_page_makes_no_difference_between_conversations(tmp_path: Path) -> None:
    damaged(tmp_path, 2)
    with Opened(tmp_path) as opened:
        opened.converse("other", OTHER).release()
    with StoreTools(tmp_path) as tools:
        same, found = tools.diff("c", "c"), tools.diff("c", "other")
    assert (same.position, same.shared_tokens, same.first_tokens) == (-1, len(LONG), len(LONG))
    assert (found.position, found.shared_tokens) == (-1, 2 * PAGE)
    assert "not on disk" in found.why


def test_an_export_names_what_is_missing(tmp_path: Path) -> None:
    damaged(tmp_path / "store", 2, 4)
    with StoreTools(tmp_path / "store") as tools:
        with pytest.raises(StoreError, match=r"16 to 23, 32 to 39 are missing .damaged"):
            tools.export_state("c", tmp_path / "file")
        assert [path.name for path in tmp_path.iterdir()] == ["store"]
    comes_back(tmp_path / "store", 2 * PAGE)
    with StoreTools(tmp_path / "store") as tools:
        assert tools.export_state("c", tmp_path / "file").tokens == len(LONG)


@pytest.mark.parametrize(("number", "lost"), [(0, (0, 3 * PAGE, 3)), (1, (3 * PAGE, 3 * PAGE + 5, 4))])
def test_a_file_that_is_gone_is_told_until_its_pages_are_back(
    tmp_path: Path, number: int, lost: tuple[int, int, int]
) -> None:
    for tokens in (BEGINNING, LONG):
        with Opened(tmp_path) as opened:
            opened.converse("c", tokens).release()
    sorted((tmp_path / "segments").iterdir())[number].unlink()
    for _ in range(2):
        with StoreTools(tmp_path) as tools:
            report = tools.verify(drop_damaged=True)
        assert (report.damaged, report.lost, report.lost_records) == ((), (Lost("c", *lost[:2]),), lost[2])
    assert saved(tmp_path) == number * 3 * PAGE
    comes_back(tmp_path, number * 3 * PAGE)
