"""Pages that are durable move from our own memory to their segment's mapping; nobody who uses them notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.kv.cache import KvCache
from engine.kv.sequence import Sequence
from engine.store.mapping import can_map
from engine.store.segment import scan
from tests.engine.kv.small import PAGE, append, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of
from tests.engine.store.test_damage import flip, segment

pytestmark = pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
TOKENS = tokens_of(range(3, 3 + 5 * PAGE + 4))


def remap(cache: KvCache) -> None:
    """Until nothing is left to be moved."""
    for _ in range(200):
        before = cache._remapping._ticket
        assert before is None or before.wait(240)
        cache.remap(1)
        if before is None and cache._remapping._ticket is None:
            return
    pytest.fail("it does not end")


def test_what_is_durable_lives_once_and_is_counted_once(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache, pool = opened.cache, opened.cache.pool
        sequence = opened.converse("chat", TOKENS)
        fork = sequence.fork()
        table, used = sequence.block_table().copy(), pool.used_bytes
        remap(cache)
        assert pool.used_bytes == used
        assert pool.mapped_bytes == 5 * pool.stride
        assert (sequence.block_table()[:5] != table[:5]).all()
        assert sequence.block_table()[5] == table[5], "the tail stays"
        for user in (sequence, fork):
            check_rows(user)
        append(sequence, tokens_of(range(200, 230)))
        check_rows(sequence)
        fork.keep_first(2 * PAGE + 3)
        append(fork, tokens_of(range(300, 330)))
        check_rows(fork)
        cache.save("chat", sequence)
        assert cache.flush(240)
        remap(cache)
        for user in (sequence, fork):
            check_rows(user)
            user.release()
        cache.evict(1 << 30)
        assert pool.used_bytes == pool.mapped_bytes == 0


def test_what_was_written_wrong_stays_in_memory_and_is_written_again(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache = opened.cache
        sequence = opened.converse("chat", TOKENS)
        record = [found for found in scan(segment(tmp_path), 0) if found.header.kind == 0][2]
        flip(segment(tmp_path), record.offset + record.header.payload_offset + 3)
        remap(cache)
        assert cache.pool.mapped_bytes == 4 * cache.pool.stride
        check_rows(sequence)
        assert cache.notices()
        cache.save("chat", sequence)
        assert cache.flush(240)
    with Opened(tmp_path) as opened:
        assert opened.cache.match(TOKENS).tokens == len(TOKENS)


def test_the_budget_holds_while_pages_move(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache, pool = opened.cache, opened.cache.pool
        sequence = opened.converse("chat", TOKENS)
        pool.budget_bytes = used = pool.used_bytes
        cache.remap(1)
        assert (pool.used_bytes, pool.mapped_bytes) == (used, 0), "a page counts once, where it is"
        remap(cache)
        assert (pool.used_bytes, pool.mapped_bytes) == (used, 5 * pool.stride)
        check_rows(sequence)


def test_memory_that_others_hold_too_stays_within_the_budget(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache, pool = opened.cache, opened.cache.pool
        sequence = opened.converse("chat", TOKENS)
        fork = sequence.fork()
        fork.keep_first(2 * PAGE + 3)  # holds the third page's memory
        pool.budget_bytes = pool.used_bytes
        cache.remap(1)
        assert cache._remapping._ticket.wait(240)
        cache.remap(1)
        assert pool.used_bytes == pool.budget_bytes
        assert pool.mapped_bytes == 4 * pool.stride
        for user in (sequence, fork):
            check_rows(user)


def test_closing_in_the_middle_leaves_nothing_behind(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache = opened.cache
        opened.converse("chat", TOKENS).release()
        cache.remap(1)
        cache.close()
        assert all(node.saved for node in cache.tree)
        cache.evict(1 << 30)
        assert cache.pool.used_bytes == 0


def test_a_page_that_is_written_again_meanwhile_stays_where_it_is_read_from(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache = opened.cache
        sequence = opened.converse("chat", TOKENS)
        cache.remap(1)
        assert cache._remapping._ticket.wait(240)
        page = sequence.pages[2]
        opened.store.discard(page.key)
        cache.save("chat", sequence)
        assert page.writing
        cache.remap(1)
        assert cache.pool.mapped_bytes == 4 * cache.pool.stride
        assert page.buffer.slab is not None
    with Opened(tmp_path) as opened:
        check_rows(restore(opened.cache, opened.cache.match(TOKENS)))


def test_what_another_instruction_set_wrote_does_not_take_a_pages_place(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        page = opened.converse("chat", TOKENS).pages[2]
        page.numerics = "another"
        remap(opened.cache)
        assert opened.cache.pool.mapped_bytes == 4 * opened.cache.pool.stride
        assert page.buffer.slab is not None


def test_a_move_makes_way_for_a_turn(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache, pool = opened.cache, opened.cache.pool
        opened.converse("chat", TOKENS).release()
        pool.budget_bytes = pool.used_bytes
        cache.remap(1)
        sequence = Sequence(cache)
        append(sequence, tokens_of(range(400, 400 + 6 * PAGE)))
        check_rows(sequence)


def test_a_conversation_is_dropped_whole_while_its_pages_move(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        cache = opened.cache
        opened.converse("chat", TOKENS).release()
        cache.remap(1)
        cache.drop("chat", disk=True)
        assert cache.pool.used_bytes == 0
