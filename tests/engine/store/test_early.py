"""A restore whose pages are computed with while they are still being checked: nothing unchecked is ever shared."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kv.disk import DiskRecord
from engine.kv.keys import Ids, Roles
from engine.kv.shift import KeyRotation
from engine.store.mapping import can_map
from engine.store.packing import Form, Packer
from engine.store.record import RecordHeader
from engine.store.segment import scan
from tests.engine.kv.small import PAGE, append, check_rows, small_spec
from tests.engine.store.opened import Opened, restore, tokens_of
from tests.engine.store.test_damage import flip, segment

pytestmark = pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
TOKENS = tokens_of(range(3, 60))


class Gate(Packer):
    """Checks as ever, pages only once it is open."""

    open = threading.Event()

    def agrees(self, header: RecordHeader, record: DiskRecord, group: int, form: Form, ids: Ids, roles: Roles) -> bool:
        assert record.tail or self.open.wait(240)
        return super().agrees(header, record, group, form, ids, roles)


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Opened]:
    with Opened(tmp_path) as opened:
        opened.converse("chat", TOKENS).release()
    Gate.open = threading.Event()
    with Opened(tmp_path) as opened:
        packer = opened.store._packer
        opened.store._reader._packer = Gate(packer.layout, packer.fingerprint)
        yield opened
        Gate.open.set()


def test_pages_are_computed_with_before_and_found_after_the_check(gated: Opened) -> None:
    cache = gated.cache
    pending = cache.begin_restore(cache.match(TOKENS))
    assert pending.wait_usable(240)
    assert not pending.done()
    sequence = pending.begin()
    assert sequence.num_tokens == len(TOKENS)
    assert not len(cache.tree), "nobody else finds them"
    assert cache.match(TOKENS).memory_tokens == 0
    sequence.reserve(20)
    Gate.open.set()
    assert pending.wait(240)
    assert pending.confirm()
    check_rows(sequence)
    assert cache.match(TOKENS).memory_tokens == len(TOKENS)
    append(sequence, tokens_of(range(60, 90)))
    check_rows(sequence)
    sequence.release()


def test_a_damaged_page_cuts_the_sequence_before_anything_counts(gated: Opened) -> None:
    cache, path = gated.cache, segment(gated.store.folder)
    record = [found for found in scan(path, 0) if found.header.kind == 0][2]
    flip(path, record.offset + record.header.payload_offset + 7)
    pending = cache.begin_restore(cache.match(TOKENS))
    assert pending.wait_usable(240)
    sequence = pending.begin()
    sequence.reserve(20)
    Gate.open.set()
    assert pending.wait(240)
    assert not pending.confirm()
    assert (sequence.num_tokens, pending.failed) == (2 * PAGE, "damaged")
    append(sequence, tokens_of(range(100, 130)))
    check_rows(sequence)
    sequence.release()
    cache.flush()
    assert cache.evict(1 << 30)
    assert cache.pool.used_bytes == 0


def test_two_restores_of_the_same_pages_become_one(gated: Opened) -> None:
    cache = gated.cache
    pending = [cache.begin_restore(cache.match(TOKENS)) for _ in range(2)]
    assert all(one.wait_usable(240) for one in pending)
    sequences = [one.begin() for one in pending]
    Gate.open.set()
    for one in pending:
        assert one.wait(240)
        assert one.confirm()
    assert sequences[0].pages == sequences[1].pages
    assert (sequences[0].block_table() == sequences[1].block_table())[:-1].all()
    for sequence in sequences:
        check_rows(sequence)
        sequence.release()
    assert cache.pool.used_bytes == cache.pool.stride * len(cache.tree)


def test_a_turn_that_ends_before_the_check_leaves_nothing_behind(gated: Opened) -> None:
    cache = gated.cache
    pending = cache.begin_restore(cache.match(TOKENS))
    assert pending.wait_usable(240)
    sequence = pending.begin()
    sequence.reserve(3)
    pending.cancel()
    sequence.release()
    Gate.open.set()
    assert pending.wait(240)
    cache.poll()
    assert cache.pool.used_bytes == 0
    assert not len(cache.tree)
    sequence = restore(cache, cache.match(TOKENS))
    check_rows(sequence)


def test_memory_lost_while_it_is_used_cuts_the_sequence(gated: Opened) -> None:
    Gate.open.set()
    cache, path = gated.cache, segment(gated.store.folder)
    sequence = restore(cache, cache.match(TOKENS))
    twin = sequence.fork()
    assert cache.losses.sound(sequence)
    records = [found for found in scan(path, 0) if found.header.kind == 0]
    with path.open("r+b") as file:
        file.truncate(records[3].offset)
    read = [page.buffer.view.any() for page in sequence.pages]  # what a step does: all of it
    assert read == [True] * 3 + [False] * (len(sequence.pages) - 3)
    assert not cache.losses.sound(sequence)
    assert not cache.losses.sound(twin)
    assert sequence.num_tokens == 3 * PAGE
    assert cache.match(TOKENS).tokens == sequence.num_tokens
    assert any("in use" in notice.what for notice in cache.notices())
    append(sequence, tokens_of(range(100, 130)))
    check_rows(sequence)
    cache.save("chat", sequence)
    twin.release()
    sequence.release()


def test_what_is_moved_from_lost_memory_does_not_count(gated: Opened) -> None:
    Gate.open.set()
    cache, path = gated.cache, segment(gated.store.folder)
    sequence = restore(cache, cache.match(TOKENS))
    records = [found for found in scan(path, 0) if found.header.kind == 0]
    with path.open("r+b") as file:
        file.truncate(records[3].offset)
    moved = cache.remove_range(sequence, PAGE, PAGE, KeyRotation.of(small_spec(), cache.layout))
    assert not any(page.saved or page.writing for page in moved.pages[2:])
    assert not cache.losses.sound(moved)
    assert moved.num_tokens == 2 * PAGE, "the third page came from the fourth"
    moved.release()
    sequence.release()
