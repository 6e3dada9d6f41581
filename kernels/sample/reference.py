"""The truth for rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kernels.sample.rule import Rule

Floats = npt.NDArray[np.float32]
_MASK = (1 << 64) - 1
_BLOCK = 64  # scores


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on nothing but its arguments.

    Two rounds of the splitmix64 finaliser (Steele, Lea, Flood 2014), the second keyed by the position.
    """
    return (_mix(_mix(seed & _MASK) ^ (position & _MASK)) >> 11) / float(1 << 53)


def _mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def sample(logits: Floats, rule: Rule, recent: Sequence[int], position: int) -> int:
    """Picks the token id for `position`.

    Args:
        logits: [vocabulary] float32; not modified.
        recent: the ids before `position`, oldest first; the last `penalty_window` of them are penalised.
    """
    scores = _penalised(logits, rule, recent)
    if rule.temperature <= 0.0:
        return int(np.argmax(scores))
    ids, kept = _candidates(scores, rule)
    weights = np.exp((kept - kept[0]) / np.float64(rule.temperature))
    threshold = uniform(rule.seed, position) * float(weights.sum())
    chosen = int(np.searchsorted(np.cumsum(weights), threshold, side="right"))
    return int(ids[min(chosen, len(ids) - 1)])


def _penalised(logits: Floats, rule: Rule, recent: Sequence[int]) -> Floats:
    """Repetition divides (or multiplies) the score, frequency and presence subtract from it."""
    neutral = rule.repetition_penalty == 1.0 and not (rule.frequency_penalty or rule.presence_penalty)
    if neutral or not recent or rule.penalty_window <= 0:
        return logits
    counts = Counter(recent[-rule.penalty_window :])
    ids = np.fromiter(counts.keys(), np.int64, len(counts))
    times = np.fromiter(counts.values(), np.float32, len(counts))
    scores = logits.copy()
    picked = scores[ids]
    factor = np.float32(rule.repetition_penalty)
    picked = np.where(picked > 0, picked / factor, picked * factor)
    scores[ids] = picked - times * rule.frequency_penalty - rule.presence_penalty
    return scores


def _candidates(scores: Floats, rule: Rule) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The ids that may be drawn and their scores, best first; at least one."""
    ids = _top_k(scores, rule.top_k)
    kept = scores[ids].astype(np.float64)
    probabilities = np.exp(kept - kept[0])
    probabilities /= probabilities.sum()
    count = len(ids)
    if rule.top_p < 1.0:
        reached = int(np.searchsorted(np.cumsum(probabilities), rule.top_p, side="left")) + 1
        count = min(count, reached)
    if rule.min_p > 0.0:
        count = min(count, max(1, int((probabilities >= rule.min_p * probabilities[0]).sum())))
    return ids[:count], kept[:count]


def _top_k(scores: Floats, k: int) -> npt.NDArray[np.int64]:
    """Ids of the k best scores in descending order (ties by id); all of them for k = 0."""
    if not 0 < k < len(scores):
        return np.argsort(-scores, kind="stable").astype(np.int64)
    found = np.flatnonzero(scores >= _bound(scores, k))
    if len(found) < k:  # some score is no number
        found = np.arange(len(scores))
    return found[np.argsort(-scores[found], kind="stable")[:k]].astype(np.int64)


def _bound(scores: Floats, k: int) -> float:
    """No more than the k-th best score: so many blocks have one that is at least this. A partition of all is slow."""
    blocks = len(scores) // _BLOCK
    if blocks < k:
        return -math.inf
    best = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
    return float(np.partition(best, blocks - k)[blocks - k])
