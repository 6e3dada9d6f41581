"""What pages are worth, and which of them leave memory."""

from __future__ import annotations

import time

from engine.kv.cache import KvCache
from engine.kv.sequence import Sequence
from engine.kv.value import Costs, chance, depth_scale
from tests.engine.kv.small import PAGE, append, cache_with, small_layout
from tests.engine.store.opened import tokens_of


def test_computing_costs_more_the_deeper_it_is() -> None:
    costs = Costs(seconds_per_token=0.01, depth_scale=1000.0)
    assert costs.compute(0, 100) < costs.compute(1000, 100) < costs.compute(9000, 100)
    whole = costs.compute(0, 300)
    assert abs(whole - costs.compute(0, 100) - costs.compute(100, 200)) < 1e-9, "the parts make the whole"


def test_depth_scale_is_where_attention_costs_what_the_weights_do() -> None:
    scale = depth_scale(134_000_000, 30 * 9 * 64)
    assert round(scale * 4 * 30 * 9 * 64) == 2 * 134_000_000


def test_reading_is_chosen_until_computing_was_measured_to_be_faster() -> None:
    assumed = Costs(1e-6, 1e9, 1.0)
    assert assumed.front(0, 10, 1 << 20, 4) == 0
    measured = Costs(1e-6, 1e9, 1.0, compute_measured=True, read_measured=True)
    assert measured.front(0, 10, 1 << 20, 4) == 10
    assert measured.front(0, 10_000_000, 1, 1_000_000) == 0


def test_where_both_are_slow_the_front_is_computed_while_the_rest_is_read() -> None:
    """1 ms a token at the front, 2 ms at 4,000; a page of 100 tokens is read in 150 ms."""
    costs = Costs(1e-3, 4000.0, 1e6, True, True)
    front = costs.front(0, 8000, 80 * 150_000, 100)
    assert 0 < front < 8000
    assert front % 100 == 0
    assert abs(costs.compute(0, front) - costs.read((8000 - front) * 1500)) < 0.3, "both end at about the same time"


def test_a_page_on_disk_is_worth_less_memory_than_one_that_must_be_computed() -> None:
    costs = Costs()
    assert costs.memory_value(0, 128, 1 << 20, True, 10, 1) < costs.memory_value(0, 128, 1 << 20, False, 10, 1)
    assert chance(10, 1, 60) > chance(1000, 1, 60)
    assert chance(10, 9, 60) > chance(10, 1, 60)


def test_memory_pressure_takes_leaves_and_the_shallow_ones_first() -> None:
    cache, deep = cache_with(tokens_of(range(6 * PAGE)))
    shallow = Sequence(cache)
    append(shallow, tokens_of(range(500, 500 + 2 * PAGE)))
    deep.release()
    shallow.release()
    now = time.monotonic()
    for node in cache.tree:
        node.last_used = now - 5.0
    cache.evict(2 * cache.pool.stride)
    assert cache.match(tokens_of(range(500, 500 + 2 * PAGE))).tokens == 0
    assert cache.match(tokens_of(range(6 * PAGE))).tokens == 6 * PAGE


def test_a_chain_is_evicted_in_one_go() -> None:
    cache, sequence = cache_with(tokens_of(range(40 * PAGE)))
    sequence.release()
    assert cache.evict(39 * cache.pool.stride) == 39 * cache.pool.stride
    assert cache.match(tokens_of(range(40 * PAGE))).tokens == PAGE


def test_without_a_store_nothing_retires() -> None:
    cache = KvCache(small_layout(), b"model", "test", None, 4 << 20)
    sequence = Sequence(cache)
    append(sequence, tokens_of(range(3 * PAGE)))
    cache.save("c", sequence)
    sequence.release()
    assert cache.retire(0.0) == 0
