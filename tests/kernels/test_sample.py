from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pytest

from kernels.sample.cpu import sampler
from kernels.sample.reference import _top_k, sample, uniform

LOGITS = np.random.default_rng(7).normal(0, 3, 101).astype(np.float32)
Floats = np.ndarray


@dataclass(frozen=True)
class Plain:
    """A rule that leaves every token its softmax."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_window: int = 256
    seed: int = 0


class Draws(Protocol):
    def __call__(self, logits: Floats, rule: Plain, recent: Sequence[int], position: int) -> int: ...


def native(logits: Floats, rule: Plain, recent: Sequence[int], position: int) -> int:
    return sampler(rule).pick(logits[None], 0, list(recent), position)


@pytest.fixture(params=[sample, native], ids=["reference", "native"])
def pick(request: pytest.FixtureRequest) -> Draws:
    return request.param


def draw(pick: Draws, count: int, **changes: float) -> list[int]:
    rule = Plain(**changes)  # type: ignore[arg-type]
    return [pick(LOGITS, rule, (), position) for position in range(count)]


def test_greedy_takes_the_best(pick: Draws) -> None:
    assert draw(pick, 3, temperature=0.0) == [int(LOGITS.argmax())] * 3


def test_frequencies_follow_the_softmax(pick: Draws) -> None:
    counts = np.bincount(draw(pick, 20_000), minlength=len(LOGITS)) / 20_000
    expected = np.exp(LOGITS - LOGITS.max())
    expected /= expected.sum()
    assert np.abs(counts - expected).max() < 0.012


def test_top_k_keeps_the_k_best(pick: Draws) -> None:
    best = set(np.argsort(-LOGITS)[:5].tolist())
    assert set(draw(pick, 3_000, top_k=5, temperature=5.0)) == best


def test_top_p_keeps_the_smallest_set_that_reaches_p(pick: Draws) -> None:
    order = np.argsort(-LOGITS)
    probabilities = np.exp(LOGITS[order] - LOGITS.max()).astype(np.float64)
    probabilities /= probabilities.sum()
    size = int((np.cumsum(probabilities) < 0.8).sum()) + 1
    assert set(draw(pick, 6_000, top_p=0.8, temperature=3.0)) == set(order[:size].tolist())


def test_min_p_drops_what_is_far_below_the_best(pick: Draws) -> None:
    allowed = set(np.flatnonzero(LOGITS.max() + np.log(0.3) <= LOGITS).tolist())
    assert set(draw(pick, 3_000, min_p=0.3, temperature=3.0)) == allowed


def test_the_same_seed_and_position_draw_the_same_token_and_others_do_not(pick: Draws) -> None:
    assert draw(pick, 200, seed=5) == draw(pick, 200, seed=5)
    assert draw(pick, 200, seed=5) != draw(pick, 200, seed=6)


def test_random_numbers_are_those_of_seed_and_position() -> None:
    values = [uniform(3, position) for position in range(5_000)]
    assert len(set(values)) == 5_000
    assert 0.48 < float(np.mean(values)) < 0.52


@pytest.mark.parametrize(
    "penalty", [{"repetition_penalty": 50.0}, {"frequency_penalty": 30.0}, {"presence_penalty": 60.0}]
)
def test_penalties_push_recent_tokens_down(pick: Draws, penalty: dict[str, float]) -> None:
    best = int(LOGITS.argmax())
    rule = Plain(temperature=0.0, **penalty)  # type: ignore[arg-type]
    assert pick(LOGITS, rule, [best], 0) != best
    assert pick(LOGITS, replace(rule, penalty_window=1), [best, 0], 0) == best


def test_logits_are_left_alone(pick: Draws) -> None:
    before = LOGITS.copy()
    pick(LOGITS, Plain(repetition_penalty=2.0, frequency_penalty=1.0), [1, 2, 3], 0)
    assert (before == LOGITS).all()


@pytest.mark.parametrize("size", [40, 41, 2559, 2560, 5003])
def test_the_best_scores_are_those_of_a_whole_sort(size: int) -> None:
    """Found by way of the best of every block: ties, scores of minus infinity, a rest that fills no block."""
    scores = np.random.default_rng(size).integers(-50, 50, size).astype(np.float32)
    scores[::7] = -np.inf
    wanted = np.argsort(-scores, kind="stable")
    for k in (1, 39, 40, size):
        ids = _top_k(scores, k)
        assert ids.tolist() == wanted[:k].tolist()
    assert len(_top_k(np.full(size, np.nan, np.float32), 40)) == 40


def cases(seed: int) -> tuple[np.random.Generator, Floats, list[int]]:
    """Three rows of scores, some with many ties, and ids that were drawn before."""
    chance = np.random.default_rng(seed)
    size = int(chance.choice([1, 3, 63, 64, 65, 1000, 4099]))
    scores = chance.normal(0, 4, (3, size)) if seed % 2 else chance.integers(-4, 4, (3, size))
    return chance, scores.astype(np.float32), chance.integers(0, size, int(chance.integers(0, 40))).tolist()


@pytest.mark.parametrize("seed", range(60))
def test_native_draws_are_those_of_the_reference(seed: int) -> None:
    chance, logits, recent = cases(seed)
    for position in range(40):
        rule = Plain(
            temperature=float(chance.choice([0.0, 0.4, 1.0, 3.0])),
            top_k=int(chance.choice([0, 1, 7, 40, 200, 10_000])),
            top_p=float(chance.choice([0.3, 0.95, 1.0])),
            min_p=float(chance.choice([0.0, 0.05, 0.5])),
            repetition_penalty=float(chance.choice([1.0, 1.1, 1.7])),
            frequency_penalty=float(chance.choice([0.0, 0.3])),
            presence_penalty=float(chance.choice([0.0, 0.7])),
            penalty_window=int(chance.choice([0, 1, 5, 256])),
            seed=int(chance.integers(-5, 1 << 60)),
        )
        row = position % 3
        assert sampler(rule).pick(logits, row, recent, position) == sample(logits[row], rule, recent, position), rule


@pytest.mark.parametrize("odd", [np.nan, -np.inf, np.inf])
def test_scores_that_are_no_usual_numbers_give_the_reference_s_best(odd: float) -> None:
    for places in ([70], [3, 100], range(101), range(64)):
        scores = LOGITS.copy()
        scores[list(places)] = odd
        greedy = Plain(temperature=0.0)
        assert native(scores, greedy, (), 0) == sample(scores, greedy, (), 0)


def test_equal_scores_go_to_the_lowest_id() -> None:
    scores = np.zeros((1, 300), np.float32)
    scores[0, [77, 140, 299]] = 5
    assert sampler(Plain(temperature=0.0)).pick(scores, 0, [], 0) == 77


def test_what_cannot_be_drawn_from_is_refused() -> None:
    pick = sampler(Plain(repetition_penalty=2.0)).pick
    for logits, row, recent in [
        (LOGITS, 0, []),
        (LOGITS[None].astype(np.float64), 0, []),
        (LOGITS[None], 1, []),
        (LOGITS[None], -1, []),
        (np.zeros((1, 0), np.float32), 0, []),
        (LOGITS[None], 0, [101]),
        (LOGITS[None], 0, [-1]),
    ]:
        with pytest.raises(ValueError):
            pick(logits, row, recent, 0)
