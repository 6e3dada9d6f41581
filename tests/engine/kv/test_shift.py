"""Taking a middle range out: keys rotate, chains are salted, what moved never passes for what was computed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine.kv.cache import KvCache
from engine.kv.layout import PageLayout
from engine.kv.sequence import Sequence
from engine.kv.shift import KeyRotation, next_shifts, salts_of
from engine.messages import KvType, Shift, Tokens
from engine.models.spec import RopeKind, RopeSpec
from tests.engine.kv.small import PAGE, append, cache_with, check_rows, small_layout, small_spec
from tests.engine.store.opened import tokens_of


def rotation(layout: PageLayout) -> KeyRotation:
    return KeyRotation.of(small_spec(), layout)


def cut(tokens: Tokens, start: int, count: int) -> Tokens:
    return Tokens(
        tokens.ids[:start] + tokens.ids[start + count :], tokens.roles[:start] + tokens.roles[start + count :]
    )


def part(tokens: Tokens, start: int, count: int) -> Tokens:
    return Tokens(tokens.ids[start : start + count], tokens.roles[start : start + count])


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("rope", [RopeKind.NORM, RopeKind.NEOX])
def test_rotating_keys_is_computing_them_at_another_position(kind: KvType, rope: RopeKind) -> None:
    """K at position p is R(p) k: rotating by d must give R(p + d) k, whatever type it is stored in."""
    dims, channels = 16, 32
    spec = RopeSpec(rope, dims, tuple(0.6**i for i in range(dims // 2)))
    layout = small_layout(kind)
    turning = KeyRotation(layout, (spec, spec))
    raw = np.random.default_rng(1).standard_normal((2, PAGE, channels)).astype(np.float32)
    from engine.kv.shift import _floats, _packed, _plane, _turned

    payload = np.zeros(layout.payload_bytes, np.uint8)
    for layer in range(2):
        plane = _plane(payload, layout.planes_of(layer)[0], PAGE)
        plane[:] = _packed(_turned(raw, spec, 37), kind)
    values = payload.copy()
    turning.rotate(payload, slice(2, 5), -30)
    for layer in range(2):
        plane = layout.planes_of(layer)[0]
        found = _floats(_plane(payload, plane, PAGE), kind)
        expected = _turned(raw, spec, 7)
        tolerance = {"f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}[kind]
        assert np.abs(found[:, 2:5] - expected[:, 2:5]).max() < tolerance
        assert np.array_equal(_plane(payload, plane, PAGE)[:, :2], _plane(values, plane, PAGE)[:, :2])
        value_plane = layout.planes_of(layer)[-1]
        assert np.array_equal(_plane(payload, value_plane, PAGE), _plane(values, value_plane, PAGE))


@pytest.mark.parametrize(("start", "count"), [(8, 8), (5, 11), (16, 3), (0, 9), (20, 17), (30, 7)])
def test_what_is_before_stays_pure_and_what_follows_is_salted(start: int, count: int) -> None:
    tokens = tokens_of(range(37))
    cache, sequence = cache_with(tokens)
    cache.save("before", sequence)
    result = cache.remove_range(sequence, start, count, rotation(cache.layout))
    left = cut(tokens, start, count)
    assert result.tokens == left
    check_rows(sequence)
    assert result.approximate == (len(left) > start)
    cache.save("c", result)
    shifts = next_shifts((), start, part(tokens, start, count), PAGE) if len(left) > start else ()
    assert cache.match(left, shifts).tokens == len(left)
    assert cache.match(left).tokens == start, "what follows is never taken for computed state, what is before always is"
    assert cache.match(tokens).tokens == len(tokens)


def test_a_moved_value_row_is_the_row_that_was_there() -> None:
    tokens = tokens_of(range(40))
    cache, sequence = cache_with(tokens)
    result = cache.remove_range(sequence, 10, 13, rotation(cache.layout))
    layout = cache.layout
    from engine.kv.shift import _plane

    def value_row(owner: Sequence, position: int) -> bytes:
        buffers = [page.buffer for page in owner.pages] + owner.open_buffers()
        plane = layout.planes_of(1)[-1]
        return _plane(buffers[position // PAGE].view, plane, PAGE)[:, position % PAGE].tobytes()

    for position in range(10, 27):
        assert value_row(result, position) == value_row(sequence, position + 13)


def test_appending_goes_on_behind_what_was_moved_and_a_fork_is_found_by_its_shifts() -> None:
    tokens = tokens_of(range(45))
    cache, sequence = cache_with(tokens)
    result = cache.remove_range(sequence, 9, 20, rotation(cache.layout))
    append(result, tokens_of(range(700, 700 + 3 * PAGE)))
    cache.save("c", result)
    shifts = (Shift(9, part(tokens, 9, 20)),)
    whole = cut(tokens, 9, 20) + tokens_of(range(700, 700 + 3 * PAGE))
    found = cache.match(whole, shifts)
    assert found.tokens == len(whole)
    again = cache.sequence(found)
    assert again.approximate
    assert again.tail_key() == result.tail_key()
    again.keep_first(10)
    assert again.approximate
    again.keep_first(8)
    assert not again.approximate


def test_random_removals_are_found_by_their_shifts_and_only_by_them() -> None:
    chance = random.Random(4)
    for _ in range(60):
        tokens = tokens_of(chance.choices(range(6), k=chance.randint(20, 90)))
        cache, sequence = cache_with(tokens)
        shifts: tuple[Shift, ...] = ()
        for _ in range(chance.randint(1, 4)):
            if len(tokens) < 8:
                break
            start = chance.randrange(len(tokens) - 4)
            count = chance.randint(1, len(tokens) - start - 2)
            sequence = cache.remove_range(sequence, start, count, rotation(cache.layout))
            shifts = next_shifts(shifts, start, part(tokens, start, count), PAGE)
            tokens = cut(tokens, start, count)
            more = tokens_of(chance.choices(range(6), k=chance.randint(0, 20)))
            append(sequence, more)
            tokens += more
        cache.save("c", sequence)
        assert sequence.tokens == tokens
        assert cache.match(tokens, shifts).tokens == len(tokens)
        first = min(shift.position for shift in shifts)
        assert first // PAGE * PAGE <= cache.match(tokens).tokens < len(tokens)


def test_salts_are_by_page() -> None:
    shifts = (Shift(3, tokens_of([1])), Shift(6, tokens_of([2])), Shift(9, tokens_of([3])))
    salts = salts_of(shifts, PAGE)
    assert {page: [s.tolist() for s in entry] for page, entry in salts.items()} == {0: [[1], [2]], 1: [[3]]}


def test_no_room_leaves_the_sequence_as_it_was() -> None:
    from engine.kv.pool import KvMemoryFull

    cache = KvCache(small_layout(), b"model", "test", None, 6 * 4096)
    sequence = Sequence(cache)
    append(sequence, tokens_of(range(5 * PAGE)))
    with pytest.raises(KvMemoryFull):
        cache.remove_range(sequence, 4, 3, rotation(cache.layout))
    check_rows(sequence)
    assert cache.pool.used_bytes == 5 * cache.pool.stride
