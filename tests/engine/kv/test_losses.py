"""Pages that count as absent while sequences hold them: they stay whole for these, and nobody else finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.cache import KvCache
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from tests.engine.kv.small import PAGE, append, cache_with, check_rows, small_layout
from tests.engine.kv.test_sequence import Model, tokens_of

TOKENS = Tokens.prompt([7 * i % 90 for i in range(5 * PAGE)])
MORE = Tokens.generated(range(2 * PAGE))
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "fork", "keep", "release", "save", "match", "distrust", "adopt"]),
        st.integers(0, 7),
        st.integers(0, 40),
    ),
    max_size=40,
)


class Distrusting(Model):
    def distrust(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        pages = [page for page in sequence.pages if page.resident]
        if pages:
            self.cache.losses.distrust(pages[amount % len(pages)])

    def adopt(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        wanted = tokens_of(ids[: len(ids) // PAGE * PAGE] + [(self.next_id + i) % 5 for i in range(2 * PAGE)])
        if sequence.tail_tokens == 0:
            gained = self.cache.adopt(sequence, wanted)
            ids.extend(wanted.ids[len(ids) : len(ids) + gained])

    def match(self, sequence: Sequence, ids: list[int], amount: int) -> None:
        found = self.cache.match(tokens_of(ids))
        again = self.cache.sequence(found)
        assert again.num_tokens == found.tokens
        assert all(page.resident for page in again.pages)
        self.pairs.append((again, ids[: found.tokens]))

    def check(self) -> None:
        super().check()
        for sequence, _ in self.pairs:
            assert list(sequence.pages) == (sequence.pages[-1].path() if sequence.pages else [])
        assert all(node.parent is None or node.parent.resident for node in self.cache.tree)


@pytest.mark.parametrize("windows", [(), (1,)])
@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS)
def test_any_sequence_of_operations_keeps_every_row(
    windows: tuple[int, ...], operations: list[tuple[str, int, int]]
) -> None:
    cache = KvCache(small_layout(windows=windows), b"model", "test", None, 4 << 20)
    model = Distrusting(cache)
    for operation in operations:
        if windows and operation[0] == "keep":
            continue  # how much of it is kept there is told elsewhere
        model.run(*operation)
        model.check()
    for sequence, _ in model.pairs:
        sequence.release()
    cache.evict(1 << 40)
    assert cache.pool.used_bytes == 0, "every buffer came back"


def computed_again() -> tuple[KvCache, Sequence]:
    """A sequence of whose pages the second was found wrong, and was computed anew by somebody else."""
    cache, sequence = cache_with(TOKENS)
    cache.save("c", sequence)
    cache.losses.distrust(sequence.pages[1])
    append(Sequence(cache), TOKENS + MORE)
    return cache, sequence


@pytest.mark.parametrize("how", ["sealed", "adopted"])
def test_with_a_page_that_somebody_else_computed_come_the_pages_before_it(how: str) -> None:
    cache, sequence = computed_again()
    old = sequence.pages[1]
    if how == "sealed":
        append(sequence, MORE)
    else:
        assert cache.adopt(sequence, TOKENS + MORE) == len(MORE)
    cache.poll()
    assert all(page.resident for page in sequence.pages)
    assert old.buffer.refs == 0
    other = Sequence(cache)
    append(other, Tokens.prompt([3] * (6 * PAGE)))  # takes the memory of those that were let go
    check_rows(sequence)
    check_rows(other)


@pytest.mark.parametrize("rest", [PAGE, PAGE + 3])
def test_rows_of_a_distrusted_page_do_not_pass_into_one_that_counts(rest: int) -> None:
    cache, sequence = cache_with(TOKENS)
    cache.losses.distrust(sequence.pages[1])
    sequence.keep_first(rest)
    cache.save("trimmed", sequence)
    head = cache.conversations.head("trimmed")
    assert head is not None
    assert (head.tokens, head.tail) == (PAGE, None)
    append(sequence, MORE)
    cache.save("c", sequence)
    assert [page.resident for page in sequence.pages] == [True] + [rest == PAGE] * (len(sequence.pages) - 1)
    assert cache.match(sequence.tokens).tokens == (sequence.num_tokens if rest == PAGE else PAGE)
    check_rows(sequence)


def test_what_is_computed_on_distrusted_pages_is_found_by_nobody() -> None:
    cache, sequence = cache_with(TOKENS)
    cache.losses.distrust(sequence.pages[1])
    append(sequence, MORE + Tokens.generated([1, 2, 3]))
    cache.save("c", sequence)
    whole = sequence.tokens
    append(Sequence(cache), TOKENS)
    assert cache.match(whole).tokens == len(TOKENS)
    head = cache.conversations.head("c")
    assert head is not None
    assert (head.tokens, head.last, head.tail) == (PAGE, sequence.pages[0].key, None)
    check_rows(sequence)


def test_a_final_vector_computed_on_a_distrusted_page_is_not_used_for_one_that_counts() -> None:
    cache, sequence = cache_with(TOKENS)
    sequence.keep_hidden(np.ones(4, np.float32))
    assert cache.match(TOKENS).hidden is not None
    cache.losses.distrust(sequence.pages[1])
    append(Sequence(cache), TOKENS)
    found = cache.match(TOKENS)
    assert (found.tokens, found.hidden) == (len(TOKENS), None)


def test_only_while_spoiled_memory_is_held_are_pages_walked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, sequence = cache_with(TOKENS)
    other = sequence.fork()
    other.keep_first(2 * PAGE + 3)  # its tail will be a copy of rows of a page that is spoiled
    cache.losses.distrust(sequence.pages[1])
    append(other, MORE)
    sequence.release()
    assert not cache.losses.sound(other)
    assert other.num_tokens == PAGE
    cache.poll()
    walked: list[Sequence] = []
    cut_lost = Sequence.cut_lost
    monkeypatch.setattr(Sequence, "cut_lost", lambda given: walked.append(given) or cut_lost(given))
    monkeypatch.setattr("engine.kv.losses.lost_count", lambda: cache.losses._seen)
    cache.losses._seen = 0  # of files, which other tests may have cut short
    assert cache.losses.sound(other)
    assert not walked, "nothing lost is left"
    cache.losses.distrust(other.pages[0])
    assert not cache.losses.sound(other)
    assert walked


def test_a_copy_of_spoiled_rows_is_met_when_they_are_gone() -> None:
    cache, sequence = cache_with(TOKENS)
    other = sequence.fork()
    other.keep_first(2 * PAGE + 3)
    cache.losses.distrust(sequence.pages[2])
    append(other, Tokens.generated([1]))
    sequence.release()
    cache.poll()
    assert not cache.losses.sound(other)
    assert other.num_tokens == 2 * PAGE
    other.release()
    cache.poll()
    assert not cache.pool.spoiled
