"""Conversations that are unchanged since they were left are found as a whole, and only those."""

from __future__ import annotations

import numpy as np

from engine.kv.cache import KvCache
from engine.kv.prefix import PrefixMatch
from engine.kv.sequence import Sequence
from engine.kv.shift import KeyRotation
from engine.messages import Shift, Tokens
from tests.engine.kv.small import PAGE, append, cache_with, small_spec

TOKENS = Tokens.prompt([7 * i % 90 for i in range(5 * PAGE + 3)])


def kept(tokens: Tokens = TOKENS) -> tuple[KvCache, Sequence]:
    cache, sequence = cache_with(tokens)
    cache.save("c", sequence)
    return cache, sequence


def step_by_step(cache: KvCache, tokens: Tokens) -> PrefixMatch:
    walks, cache.tree.walks = cache.tree.walks, type(cache.tree.walks)()
    found = cache.match(tokens)
    cache.tree.walks = walks
    return found


def test_an_unchanged_conversation_is_found_as_it_would_be_page_by_page() -> None:
    cache, sequence = kept()
    longer = TOKENS + Tokens.prompt(range(2 * PAGE))
    for tokens in (TOKENS, longer):
        found, slow = cache.match(tokens, conversation="c", history=len(TOKENS)), step_by_step(cache, tokens)
        assert found.walked == 5
        assert slow.walked == 0
        assert found.pages == slow.pages == sequence.pages
        assert (found.tokens, found.memory_tokens, found.disk_tokens) == (len(TOKENS), len(TOKENS), 0)
        assert cache.sequence(found).tokens == TOKENS


def test_pages_that_another_conversation_has_behind_it_are_found_too() -> None:
    cache, sequence = kept()
    twin = sequence.fork()
    more = Tokens.generated(range(2 * PAGE))
    append(twin, more)
    assert cache.match(TOKENS + more).walked == 5
    assert cache.match(TOKENS + more).tokens == len(TOKENS + more) // PAGE * PAGE


def test_another_token_or_role_in_it_leads_page_by_page() -> None:
    cache, _ = kept()
    ids = list(TOKENS.ids)
    ids[2 * PAGE + 1] += 1
    assert cache.match(Tokens.prompt(ids)).tokens == 2 * PAGE + 1
    roles = (*TOKENS.roles[:PAGE], 1 - TOKENS.roles[PAGE], *TOKENS.roles[PAGE + 1 :])
    assert cache.match(Tokens(TOKENS.ids, roles)).tokens == PAGE


def test_what_has_left_memory_is_not_found() -> None:
    cache, sequence = kept()
    sequence.release()
    cache.evict(cache.pool.used_bytes - 2 * cache.pool.stride)
    found = cache.match(TOKENS)
    assert found.walked == 0
    assert found.tokens < len(TOKENS)
    assert found.pages == step_by_step(cache, TOKENS).pages


def test_of_several_the_longest_counts_and_the_ones_used_last_are_kept() -> None:
    cache, sequence = kept()
    append(sequence, more := Tokens.generated(range(3 * PAGE)))
    cache.save("c", sequence)
    assert cache.match(TOKENS + more).walked == 8
    assert cache.match(TOKENS).walked == 5
    for number in range(20):
        other = Sequence(cache)
        append(other, Tokens.prompt([number] * PAGE))
        cache.save(f"other {number}", other)
    assert cache.match(TOKENS + more).walked == 0
    assert cache.match(TOKENS + more).tokens == len(TOKENS + more)


def test_what_was_moved_is_never_taken_for_what_was_computed() -> None:
    cache, sequence = kept()
    removed = Tokens(TOKENS.ids[PAGE : 2 * PAGE], TOKENS.roles[PAGE : 2 * PAGE])
    moved = cache.remove_range(sequence, PAGE, PAGE, KeyRotation.of(small_spec(), cache.layout))
    cache.save("moved", moved)
    left = moved.tokens
    assert cache.match(left).tokens == PAGE
    assert cache.match(left, (Shift(PAGE, removed),)).tokens == len(left)
    assert np.array_equal(cache.match(left).ids, left.ids)


def test_no_way_leads_through_pages_that_count_as_absent() -> None:
    cache, sequence = kept()
    bad = sequence.pages[1]
    cache.losses.distrust(bad)
    cache.tree.remember(sequence.pages)
    again = Sequence(cache)
    append(again, TOKENS)
    mixed = [*again.pages]
    mixed[1] = bad
    cache.tree.remember(mixed)
    assert cache.match(TOKENS).walked == 0
    cache.tree.remember(again.pages)
    assert cache.match(TOKENS).walked == 5
    append(sequence, Tokens.generated(range(2 * PAGE)))  # the turn that holds them goes on
    cache.save("c", sequence)
    found = cache.match(sequence.tokens)
    assert found.pages == again.pages
    assert all(page.resident for page in cache.sequence(found).pages)
