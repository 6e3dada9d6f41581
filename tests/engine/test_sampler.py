import numpy as np
import pytest

from engine.messages import Sampling
from engine.sampler import _top_k, sample, uniform

LOGITS = np.random.default_rng(7).normal(0, 3, 101).astype(np.float32)


def draw(count: int, **changes: object) -> list[int]:
    sampling = Sampling(**({"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0} | changes))  # type: ignore[arg-type]
    return [sample(LOGITS, sampling, (), position) for position in range(count)]


def test_greedy_takes_the_best() -> None:
    assert draw(3, temperature=0.0) == [int(LOGITS.argmax())] * 3


def test_frequencies_follow_the_softmax() -> None:
    counts = np.bincount(draw(20_000), minlength=len(LOGITS)) / 20_000
    expected = np.exp(LOGITS - LOGITS.max())
    expected /= expected.sum()
    assert np.abs(counts - expected).max() < 0.012


def test_top_k_keeps_the_k_best() -> None:
    best = set(np.argsort(-LOGITS)[:5].tolist())
    assert set(draw(3_000, top_k=5, temperature=5.0)) == best


def test_top_p_keeps_the_smallest_set_that_reaches_p() -> None:
    order = np.argsort(-LOGITS)
    probabilities = np.exp(LOGITS[order] - LOGITS.max()).astype(np.float64)
    probabilities /= probabilities.sum()
    size = int((np.cumsum(probabilities) < 0.8).sum()) + 1
    assert set(draw(6_000, top_p=0.8, temperature=3.0)) == set(order[:size].tolist())


def test_min_p_drops_what_is_far_below_the_best() -> None:
    allowed = set(np.flatnonzero(LOGITS.max() + np.log(0.3) <= LOGITS).tolist())
    assert set(draw(3_000, min_p=0.3, temperature=3.0)) == allowed


def test_the_same_seed_and_position_draw_the_same_token_and_others_do_not() -> None:
    assert draw(200, seed=5) == draw(200, seed=5)
    assert draw(200, seed=5) != draw(200, seed=6)
    values = [uniform(3, position) for position in range(5_000)]
    assert len(set(values)) == 5_000
    assert 0.48 < float(np.mean(values)) < 0.52


@pytest.mark.parametrize(
    "penalty", [{"repetition_penalty": 50.0}, {"frequency_penalty": 30.0}, {"presence_penalty": 60.0}]
)
def test_penalties_push_recent_tokens_down(penalty: dict[str, float]) -> None:
    best = int(LOGITS.argmax())
    sampling = Sampling(temperature=0.0, **penalty)  # type: ignore[arg-type]
    assert sample(LOGITS, sampling, [best], 0) != best
    assert sample(LOGITS, Sampling(temperature=0.0, penalty_window=1, **penalty), [best, 0], 0) == best  # type: ignore[arg-type]


def test_logits_are_left_alone() -> None:
    before = LOGITS.copy()
    sample(LOGITS, Sampling(repetition_penalty=2.0, frequency_penalty=1.0), [1, 2, 3], 0)
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
