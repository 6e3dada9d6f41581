"""Sequences against a simple model: what a sequence holds is a list of tokens, and its rows hold their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.cache import KvCache
from engine.kv.pool import KvMemoryFull
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from tests.engine.kv.small import PAGE, append, check_rows, small_layout

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["append", "fork", "keep", "release", "save", "match"]),
        st.integers(0, 7),
        st.integers(0, 40),
    ),
    max_size=40,
)


def tokens_of(ids: list[int]) -> Tokens:
    return Tokens(tuple(ids), tuple(i % 2 for i in ids))


class Model:
    """Runs operations on real sequences and, beside them, on plain lists of ids."""

    def __init__(self, cache: KvCache) -> None:
        self.cache = cache
        self.pairs: list[tuple[Sequence, list[int]]] = [(Sequence(cache), [])]
        self.saved: list[list[int]] = []
        self.next_id = 0

    def run(self, name: str, which: int, amount: int) -> None:
        sequence, ids = self.pairs[which % len(self.pairs)]
        getattr(self, name)(sequence, ids, amount)

    def append(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        # Few distinct ids, so that different sequences come to hold equal pages.
        fresh = [(self.next_id + i) % 5 for i in range(amount)]
        self.next_id += amount % 3
        append(sequence, tokens_of(fresh))
        ids.extend(fresh)

    def fork(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        self.pairs.append((sequence.fork(), list(ids)))

    def keep(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        count = min(amount, len(ids))
        sequence.keep_first(count)
        del ids[count:]

    def release(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        if len(self.pairs) > 1:
            sequence.release()
            self.pairs = [pair for pair in self.pairs if pair[0] is not sequence]

    def save(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        self.cache.save(f"c{amount % 3}", sequence)
        self.saved.append(list(ids))

    def match(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        found = self.cache.match(tokens_of(ids))
        assert found.tokens >= len(ids) // PAGE * PAGE
        again = self.cache.sequence(found)
        assert again.num_tokens == found.tokens
        self.pairs.append((again, ids[: found.tokens]))

    def check(self) -> None:
        for sequence, ids in self.pairs:
            assert sequence.num_tokens == len(ids)
            assert sequence.tokens == tokens_of(ids)
            check_rows(sequence)


@settings(max_examples=150, deadline=None)
@given(OPERATIONS)
def test_any_sequence_of_operations_keeps_every_row(operations: list[tuple[str, int, int]]) -> None:
    cache = KvCache(small_layout(), b"model", "test", None, 4 << 20)
    model = Model(cache)
    for operation in operations:
        model.run(*operation)
        model.check()
    for sequence, _ in model.pairs:
        sequence.release()
    cache.evict(1 << 40)
    assert cache.pool.used_bytes == 0, "every buffer came back"


def test_a_fork_shares_until_it_writes() -> None:
    cache = KvCache(small_layout(), b"model", "test", None, 4 << 20)
    first = Sequence(cache)
    append(first, tokens_of(list(range(PAGE + 3))))
    second = first.fork()
    assert (first.block_table() == second.block_table()).all()
    used = cache.pool.used_bytes
    append(first, tokens_of([1]))
    assert cache.pool.used_bytes == used, "the original goes on in place"
    append(second, tokens_of([2]))
    assert cache.pool.used_bytes == used + cache.pool.stride, "the fork copies its tail, not the page"
    assert first.block_table()[0] == second.block_table()[0]
    check_rows(first)
    check_rows(second)


def test_the_full_budget_refuses_and_changes_nothing() -> None:
    layout = small_layout()
    cache = KvCache(layout, b"model", "test", None, 3 * 4096)
    sequence = Sequence(cache)
    append(sequence, tokens_of(list(range(2 * PAGE + 1))))
    with pytest.raises(KvMemoryFull) as error:
        sequence.reserve(PAGE)
    assert error.value.next
    assert sequence.num_tokens == 2 * PAGE + 1
    append(sequence, tokens_of([1] * (PAGE - 1)))
    check_rows(sequence)
    sequence.release()
    assert Sequence(cache).reserve(3 * PAGE) is None, "what nobody holds is evicted"


def test_a_shared_tail_cannot_be_committed_to_without_reserving() -> None:
    cache = KvCache(small_layout(), b"model", "test", None, 4 << 20)
    first = Sequence(cache)
    append(first, tokens_of([1, 2, 3]))
    second = first.fork()
    with pytest.raises(AssertionError):
        second.commit([4], [0])


def test_hidden_vectors_are_kept_for_prompt_ends() -> None:
    cache = KvCache(small_layout(), b"model", "test", None, 4 << 20)
    sequence = Sequence(cache)
    prompt = tokens_of(list(range(PAGE + 2)))
    append(sequence, prompt)
    sequence.keep_hidden(np.arange(4, dtype=np.float32))
    append(sequence, tokens_of([7]))
    assert sequence.hidden is None
    cache.save("c", sequence)
    found = cache.match(prompt)
    assert found.tokens == len(prompt)
    assert found.hidden is not None
    assert cache.sequence(found).hidden.tolist() == [0, 1, 2, 3]
    assert cache.match(prompt + tokens_of([7])).hidden is None
