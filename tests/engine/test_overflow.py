"""Ways out of a full context: what they drop, keep and cost."""

from __future__ import annotations

from dataclasses import replace

from engine.kv.value import Costs
from engine.overflow import Overflowing, OverflowOption, overflow_options
from tests.engine.kv.small import small_spec

COSTS = Costs(0.01, 4000.0, 1e9)
FULL = Overflowing(
    total=8300, shared=4000, turns=(4000, 5000, 6000, 7000), question=8100, context=8192, model_context=16384,
    reserve=500, decode_rate=20.0, bytes_per_token=23040,
)  # fmt: skip


def options(
    prompt: Overflowing = FULL, kv_type: str = "f16", windows: tuple[int, ...] = ()
) -> dict[str, OverflowOption]:
    found = overflow_options(prompt, COSTS, small_spec(windows=windows), kv_type)
    return {option.way: option for option in found}


def test_what_fits_needs_no_way_out() -> None:
    assert not options(replace(FULL, total=7600, question=7500))


def test_whole_turns_go_until_a_quarter_is_free_and_the_document_stays() -> None:
    way = options()["recompute"]
    assert way.dropped == (4000, 6000)
    assert way.turns_dropped == 2
    assert way.tokens == 6300
    assert way.computed == 2300
    assert way.exact
    assert way.seconds == COSTS.compute(4000, 2300)


def test_shifting_computes_the_question_only_and_says_it_is_approximate() -> None:
    way = options()["shift"]
    assert way.dropped == options()["recompute"].dropped
    assert way.computed == 200
    assert way.seconds < options()["recompute"].seconds
    assert not way.exact
    assert not way.refused


def test_shifting_is_refused_where_keys_cannot_be_rotated() -> None:
    assert options(kv_type="q8")["shift"].refused
    assert options(windows=(1,))["shift"].refused
    assert not options(kv_type="bf16")["shift"].refused


def test_a_larger_context_is_offered_up_to_the_models_own() -> None:
    assert not options()["larger"].refused
    assert options(replace(FULL, model_context=8192))["larger"].refused


def test_a_document_that_fills_the_context_leaves_no_way_but_a_larger_one() -> None:
    ways = options(replace(FULL, shared=7900, turns=(7900,)))
    assert all(ways[name].refused for name in ("recompute", "shift", "fork"))
    assert not ways["larger"].refused


def test_a_summary_is_written_and_read() -> None:
    way = options()["fork"]
    assert way.tokens == 4000 + 400 + 200
    assert way.seconds > 400 / 20.0


def test_without_room_for_a_summary_the_turns_are_read_again() -> None:
    roomy, full = options(replace(FULL, question=7700))["fork"], options()["fork"]
    assert roomy.computed == 400 + 600
    assert full.computed == (8100 - 4000) + 400 + 200
    assert not full.refused


def test_a_larger_context_fits_the_memory_budget() -> None:
    way = options()["larger"]
    assert way.context == 16384
    tight = options(replace(FULL, affordable=9000))["larger"]
    assert tight.context == 9000
    assert not tight.refused
    assert "8,200" in options(replace(FULL, affordable=8200))["larger"].refused


def test_a_first_question_that_is_too_long_has_no_turn_to_give_up() -> None:
    ways = options(replace(FULL, turns=(), question=4000))
    assert all(ways[name].refused for name in ("recompute", "shift", "fork"))
