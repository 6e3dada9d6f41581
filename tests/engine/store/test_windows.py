"""Sliding-window layers are on disk only around anchors; what is not there is told, computed, and never attended to."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.kv.cache import KvCache
from engine.kv.disk import DiskRecord
from engine.kv.keys import Key, arrays, chain
from engine.kv.layout import PageLayout
from engine.kv.pool import PageBuffer, PagePool
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from tests.engine.kv.small import PAGE, append, check_rows, small_layout
from tests.engine.store.opened import Opened, restore, tokens_of

LAYOUT = small_layout(windows=(1,))  # looks 16 tokens back: two pages
DOCUMENT = tokens_of(range(20 * PAGE))


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that was not read or computed holds what no test would take for a row."""
    allocate = PagePool.allocate

    def poisoned(pool: PagePool) -> PageBuffer:
        buffer = allocate(pool)
        buffer.view.fill(0xFF)
        return buffer

    monkeypatch.setattr(PagePool, "allocate", poisoned)


def _opened(folder: Path, layout: PageLayout = LAYOUT) -> Opened:
    return Opened(folder, layout)


def _stored(it: Opened, tokens: Tokens) -> list[bool]:
    """Of each page of the tokens: whether its windows are on disk."""
    it.store.refresh()
    keys = chain(it.cache.root, *arrays(tokens), PAGE)
    return [record.whole for record in map(it.store.find, keys) if record is not None]


def _continued(cache: KvCache, tokens: Tokens) -> tuple[Sequence, int]:
    """As a turn does it: what is there is restored, the rest computed. Returns how many tokens were there."""
    sequence = restore(cache, cache.match(tokens))
    done = sequence.num_tokens
    check_rows(sequence)
    append(sequence, Tokens(tokens.ids[done:], tokens.roles[done:]))
    check_rows(sequence)
    return sequence, done


def test_only_pages_that_anchors_look_back_on_are_stored_with_windows(tmp_path: Path) -> None:
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
        whole = _stored(it, DOCUMENT)
        # checkpoints every four windows: 64 and 128 tokens; and the end of the turn at 160
        assert [i for i, there in enumerate(whole) if there] == [6, 7, 14, 15, 18, 19]
        records = [it.store.find(key) for key in chain(it.cache.root, *arrays(DOCUMENT), PAGE)]
        assert len({record.bytes for record in records if record}) == 2


def test_a_return_reads_the_last_windows_only_and_goes_on(tmp_path: Path) -> None:
    longer = DOCUMENT + tokens_of(range(500, 530))
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
    with _opened(tmp_path) as it:
        found = it.cache.match(DOCUMENT)
        assert found.tokens == len(DOCUMENT)
        pages = [page for page in found.pages if isinstance(page, DiskRecord)]
        assert [page.whole for page in pages] == [False] * 18 + [True] * 2
        _, done = _continued(it.cache, longer)
        assert done == len(DOCUMENT)


def test_between_anchors_it_falls_back_to_the_one_before_and_says_so(tmp_path: Path) -> None:
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
    with _opened(tmp_path) as it:
        cut = Tokens(DOCUMENT.ids[:150], DOCUMENT.roles[:150])
        found = it.cache.match(cut)
        assert (found.tokens, found.missing_reason, found.parted) == (128, "sliding window", 150)
        sequence, done = _continued(it.cache, cut)
        assert done == 128
        it.cache.save("b", sequence)
        it.cache.flush(240)
    with _opened(tmp_path) as it:
        assert it.cache.match(cut).tokens == 150, "the end of a turn is an anchor of its own"


def test_in_memory_a_cut_falls_back_too(tmp_path: Path) -> None:
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
    with _opened(tmp_path) as it:
        sequence = restore(it.cache, it.cache.match(DOCUMENT))
        assert sequence.keep_first(150) == 0, "checkpoints were not read into memory"
        check_rows(sequence)


def test_pages_in_memory_get_the_windows_that_they_lack(tmp_path: Path) -> None:
    """One conversation ends far behind the place where the other goes on: its pages are there without windows."""
    other = Tokens(DOCUMENT.ids[:64], DOCUMENT.roles[:64]) + tokens_of(range(700, 720))
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
    with _opened(tmp_path) as it:
        first = restore(it.cache, it.cache.match(DOCUMENT))
        found = it.cache.match(other)
        assert (found.tokens, found.disk_tokens) == (64, 0)
        assert [node.start for node, _ in found.unfinished] == [48, 56]
        _, done = _continued(it.cache, other)
        assert done == 64
        check_rows(first)


def test_computing_again_completes_what_is_in_memory(tmp_path: Path) -> None:
    cut = Tokens(DOCUMENT.ids[:150], DOCUMENT.roles[:150])
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
    with _opened(tmp_path) as it:
        first = restore(it.cache, it.cache.match(DOCUMENT))
        before = it.cache.stat().pages
        second, done = _continued(it.cache, cut)
        assert done == 128
        assert it.cache.stat().pages == before, "no page is held twice"
        assert second.pages[17] is first.pages[17]
        assert second.pages[17].whole
        check_rows(first)


def test_a_lost_window_ends_the_prefix_before_it(tmp_path: Path) -> None:
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
        key = chain(it.cache.root, *arrays(DOCUMENT), PAGE)[-1]
        part = _part(it, key)
        path = next((tmp_path / "segments").glob(part.segment))
    with path.open("r+b") as file:
        file.seek(part.offset + part.payload + 3)
        file.write(b"\x5a")
    with _opened(tmp_path) as it:
        pending = it.cache.begin_restore(it.cache.match(DOCUMENT))
        assert pending.wait(240)
        sequence = pending.take()
        assert (sequence.num_tokens, pending.failed) == (0, "damaged")
        assert it.cache.match(DOCUMENT).tokens == 128
        _, done = _continued(it.cache, DOCUMENT)
        assert done == 128


def _part(it: Opened, key: Key):  # type: ignore[no-untyped-def]
    it.store.refresh()
    record = it.store.find(key)
    assert record is not None
    assert record.parts[1] is not None
    return record.parts[1]


def test_where_conversations_part_becomes_an_anchor(tmp_path: Path) -> None:
    with _opened(tmp_path) as it:
        it.converse("a", DOCUMENT)
    with _opened(tmp_path) as it:
        other = Tokens(DOCUMENT.ids[:104], DOCUMENT.roles[:104]) + tokens_of(range(700, 780))
        found = it.cache.match(other)
        assert (found.tokens, found.parted) == (64, 104)
        sequence = restore(it.cache, found)
        sequence.anchors = (found.parted,)
        append(sequence, Tokens(other.ids[64:], other.roles[64:]))
        it.cache.save("b", sequence)
        it.cache.flush(240)
    with _opened(tmp_path) as it:
        third = Tokens(DOCUMENT.ids[:104], DOCUMENT.roles[:104]) + tokens_of(range(900, 910))
        assert it.cache.match(third).tokens == 104


def _grown(it: Opened, pages: int) -> Sequence:
    """Computed so far and written, but no turn has ended: what a process that is killed leaves behind."""
    sequence = Sequence(it.cache)
    for start in range(0, pages * PAGE, PAGE):
        append(sequence, Tokens(DOCUMENT.ids[start : start + PAGE], DOCUMENT.roles[start : start + PAGE]))
    assert it.cache.flush(240)
    return sequence


@pytest.mark.parametrize("pages", [1, 2, 3, 7, 8, 9, 13, 15, 17])
def test_a_killed_prefill_goes_on_behind_the_last_page_that_was_written(tmp_path: Path, pages: int) -> None:
    with _opened(tmp_path) as it:
        sequence = _grown(it, pages)
        with _opened(tmp_path) as other:
            assert other.cache.match(DOCUMENT).tokens == pages * PAGE
            check_rows(restore(other.cache, other.cache.match(DOCUMENT)))
        check_rows(sequence)


def test_a_turn_that_was_killed_loses_no_written_page(tmp_path: Path) -> None:
    """The turn before ended in the middle of a page."""
    with _opened(tmp_path) as it:
        start = Tokens(DOCUMENT.ids[:29], DOCUMENT.roles[:29])
        it.converse("a", start)
    with _opened(tmp_path) as it:
        sequence = restore(it.cache, it.cache.match(start))
        for stop in range(32, 144, PAGE):
            more = slice(sequence.num_tokens, stop)
            append(sequence, Tokens(DOCUMENT.ids[more], DOCUMENT.roles[more]))
            assert it.cache.flush(240)
            with _opened(tmp_path) as other:
                assert other.cache.match(DOCUMENT).tokens == stop
                assert other.cache.match(start).tokens == len(start)


def test_windows_that_another_conversation_ends_with_stay(tmp_path: Path) -> None:
    """It was forked off in the meantime, by another process."""
    with _opened(tmp_path) as it:
        sequence = _grown(it, 5)
        with _opened(tmp_path) as other:
            five = Tokens(DOCUMENT.ids[: 5 * PAGE], DOCUMENT.roles[: 5 * PAGE])
            other.converse("fork", five)
        append(sequence, Tokens(DOCUMENT.ids[5 * PAGE :], DOCUMENT.roles[5 * PAGE :]))
        it.cache.save("a", sequence)
        assert it.cache.flush(240)
        assert [i for i, there in enumerate(_stored(it, DOCUMENT)) if there] == [3, 4, 6, 7, 14, 15, 18, 19]
    with _opened(tmp_path) as it:
        assert it.cache.match(five).tokens == 5 * PAGE


def test_other_processes_read_the_rows_that_are_left(tmp_path: Path) -> None:
    with _opened(tmp_path) as it:
        sequence = _grown(it, 6)
        with _opened(tmp_path) as other:
            assert all(_stored(other, DOCUMENT)), "nothing was let go yet"
            append(sequence, Tokens(DOCUMENT.ids[6 * PAGE :], DOCUMENT.roles[6 * PAGE :]))
            it.cache.save("a", sequence)
            assert it.cache.flush(240)
            assert _stored(other, DOCUMENT) == _stored(it, DOCUMENT)
            assert not all(_stored(other, DOCUMENT))
