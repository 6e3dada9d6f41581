"""Sliding-window layers leave memory behind the window, but not what somebody looks back on; the account is exact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kv.sequence import Sequence
from engine.messages import Tokens
from engine.store.mapping import can_map, in_file_cache
from tests.engine.kv.small import append, check_rows, small_layout
from tests.engine.store.opened import Opened, restore, tokens_of

PAGE = 256
LAYOUT = small_layout(windows=(1,), page=PAGE)  # looks 16 tokens back
WINDOW_BYTES = LAYOUT.groups[1].stop - LAYOUT.groups[1].start
TOKENS = tokens_of(i % 90 for i in range(7 * PAGE + 20))
pytestmark = pytest.mark.skipif(not can_map(), reason="memory cannot be given back here")


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Opened]:
    with Opened(tmp_path, LAYOUT, ram_budget=64 << 20) as opened:
        yield opened


def grow(it: Opened, sequence: Sequence, tokens: Tokens) -> None:
    """Page by page, each written before the next."""
    for start in range(sequence.num_tokens, len(tokens), 200):
        append(sequence, Tokens(tokens.ids[start : start + 200], tokens.roles[start : start + 200]))
        assert it.cache.flush(240)


def whole(sequence: Sequence) -> list[int]:
    return [place for place, page in enumerate(sequence.pages) if page.whole]


def test_windows_leave_memory_behind_the_sequence(it: Opened) -> None:
    sequence, pool = Sequence(it.cache), it.cache.pool
    grow(it, sequence, TOKENS)
    check_rows(sequence)
    assert whole(sequence) == [], "the last window lies in the tail"
    assert pool.used_bytes == 8 * pool.stride - 7 * WINDOW_BYTES
    assert pool.reserved_bytes % pool.stride == -7 * WINDOW_BYTES % pool.stride
    for page in sequence.pages:
        full, window = (page.buffer.view[group.start : group.stop] for group in LAYOUT.groups)
        assert in_file_cache(full)
        assert not in_file_cache(window), "the system has it back"
    it.cache.save("a", sequence)
    it.cache.flush(240)
    assert it.cache.report("a", TOKENS).bytes_memory == pool.used_bytes
    sequence.release()
    it.cache.evict(1 << 30)
    assert pool.used_bytes == 0
    again = Sequence(it.cache)
    append(again, tokens_of(i % 70 for i in range(8 * PAGE)))
    check_rows(again)
    assert pool.used_bytes == 8 * pool.stride - WINDOW_BYTES * (8 - len(whole(again)))


def test_anchors_stay_and_can_be_gone_on_from(it: Opened) -> None:
    sequence = Sequence(it.cache)
    sequence.anchors = (2 * PAGE + 7,)  # looks back into the page before
    grow(it, sequence, TOKENS)
    assert whole(sequence) == [1, 2]
    fork = sequence.fork()
    assert fork.keep_first(2 * PAGE + 7) == 2 * PAGE + 7
    append(fork, tokens_of(range(50)))
    check_rows(fork)
    it.cache.save("a", sequence)
    append(sequence, tokens_of(i % 80 for i in range(2 * PAGE)))
    check_rows(sequence)
    assert whole(sequence) == [1, 2, 7, 8], "a conversation's end is an anchor"


def test_what_another_looks_back_on_stays(it: Opened) -> None:
    sequence = Sequence(it.cache)
    grow(it, sequence, Tokens(TOKENS.ids[: 3 * PAGE], TOKENS.roles[: 3 * PAGE]))
    other = sequence.fork()
    grow(it, sequence, TOKENS)
    assert 2 in whole(sequence)
    append(other, tokens_of(range(300)))
    check_rows(other)
    assert it.cache.flush(240)
    append(sequence, tokens_of(i % 60 for i in range(PAGE)))
    assert whole(sequence)[:-1] == []
    check_rows(other)
    check_rows(sequence)


def test_computing_again_brings_windows_back(it: Opened) -> None:
    first, pool = Sequence(it.cache), it.cache.pool
    grow(it, first, TOKENS)
    cut = Tokens(TOKENS.ids[: 3 * PAGE], TOKENS.roles[: 3 * PAGE])
    found = it.cache.match(cut)
    assert (found.tokens, found.missing_reason) == (0, "sliding window")
    second = restore(it.cache, found)
    append(second, cut)
    check_rows(second)
    assert whole(second)
    assert second.pages == first.pages[:3]
    check_rows(first)
    assert pool.used_bytes == 8 * pool.stride - WINDOW_BYTES * (7 - len(whole(first)))
