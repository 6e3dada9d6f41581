"""Speculation: how many drafted tokens go into a step beside the sampled one, so that it pays.

A drafted token is one more row of the step. What rows cost is measured as the engine works, and so is how often
drafts are right, by the length of their match. A row is worth its cost while the chance that it is reached is high
enough; the threshold is the one with the most expected tokens per second, and none is drafted where that gains little
(many experts: every row reads experts of its own).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Rows
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.drafts import LONGEST_MATCH, NO_DRAFT, Draft
from engine.turn import Turn
from kernels.native_program import Tried

LONGEST_DRAFT = 16
MATCHES = (2, 3, 4, 8)  # lengths from which on chances are others
_FIRST_GUESSES = (0.35, 0.5, 0.7, 0.85)  # for these
_CLASSES = tuple(max(m for m in MATCHES if m <= max(match, MATCHES[0])) for match in range(LONGEST_MATCH + 1))
_ANY = (0,) * LONGEST_DRAFT
Lengths = npt.NDArray[np.int32]  # [LONGEST_MATCH + 1]
_NEVER: Lengths = np.zeros(0, np.int32)
_THRESHOLDS = (0.85, 0.7, 0.55, 0.4, 0.25)
_PASS_ROWS = 8  # that the kernels take at once: a ninth row costs as much as eight
_BESIDE_PREFILL = 0.4  # the step takes its time by the prompt's rows
_LEAST_GAIN = 1.05
_OPTIMISM = 0.05  # what an unmeasured row is thought to cost, of the smallest known step
_KEPT_TIMES = 5
_STALE_STEPS = 512  # after which what a step cost is measured again
_LOOK_STEPS = 32  # how often such times are looked for
_LOOK_RUNS = 8  # how often it is found out behind which matches drafts pay
_SEEN_KEPT = 0.9  # weight of earlier drafts
_PASSED_KEPT = 0.99  # drafts that were not tried pull the chance back to the first guess


@dataclass
class _Times:
    """The last times, in milliseconds, of steps with so many rows; `step`: when the last one was taken."""

    step: int = 0
    last: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT_TIMES))


class StepCosts:
    """What a step without prompt rows costs by its number of rows. Milliseconds."""

    def __init__(self) -> None:
        self._times: dict[int, _Times] = {}
        self._known: dict[int, float] = {}
        self._steps = 0

    def saw(self, rows: int, milliseconds: float) -> None:
        self._steps += 1
        times = self._times.get(rows)
        if times is None:
            times = self._times[rows] = _Times()
        times.step = self._steps
        times.last.append(milliseconds)
        self._known[rows] = _median(times.last)
        if self._steps % _LOOK_STEPS == 0:
            for old in [rows for rows, times in self._times.items() if self._steps - times.step > _STALE_STEPS]:
                del self._times[old], self._known[old]

    def of(self, rows: int) -> float:
        """Between known numbers of rows in proportion; above them cautiously cheap, so that it is tried. 0: unknown."""
        known = self._known
        if rows in known:
            return known[rows]
        below = max((count for count in known if count < rows), default=0)
        above = min((count for count in known if count > rows), default=0)
        if not below:
            return known[above] if above else 0.0
        if not above:
            return known[below] + (rows - below) * _OPTIMISM * min(known.values())
        return known[below] + (rows - below) / (above - below) * (known[above] - known[below])


def _median(values: Iterable[float]) -> float:
    """As statistics.median, in a tenth of its time: every step waits for it."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


class Chances:
    """How likely a drafted token is right, given that those before it were: by the length of the match."""

    _GUESS_WEIGHT = 2.0

    def __init__(self) -> None:
        self._guess = dict(zip(MATCHES, _FIRST_GUESSES, strict=True))
        self._right = dict.fromkeys(MATCHES, 0.0)
        self._tried = dict(self._right)

    def of(self, match: int) -> float:
        least = _CLASSES[match]
        right = self._right[least] + self._guess[least] * self._GUESS_WEIGHT
        return min(0.98, right / (self._tried[least] + self._GUESS_WEIGHT))

    def judged(self, match: int, drafted: int, accepted: int) -> None:
        """`accepted` of `drafted` tokens were right; the first wrong one ended it. `drafted` 0: it was not tried."""
        least = _CLASSES[match]
        kept = _SEEN_KEPT if drafted else _PASSED_KEPT
        self._right[least] = self._right[least] * kept + accepted
        self._tried[least] = self._tried[least] * kept + min(drafted, accepted + 1)


class Speculation:
    """Engine thread only. Drafts change how many steps an answer takes, never its tokens or its KV."""

    def __init__(self, end_tokens: frozenset[int], context: int, *, on: bool = True) -> None:
        self._end_tokens = end_tokens
        self._context = context
        self._on = on
        self._asked = 0
        self._paying: dict[int, tuple[Lengths, int]] = {}  # by the number of answers
        self.costs = StepCosts()
        self.chances = Chances()

    def drafts(self, turns: Rows[Turn], *, beside_prefill: bool) -> list[tuple[int, ...]]:
        """Tokens to try for each turn behind its last sampled one."""
        if not self._on:
            return [()] * len(turns)
        found = [self._find(turn) for turn in turns]
        lengths = self._beside(found) if beside_prefill else self._lengths(found)
        for turn, draft, length in zip(turns, found, lengths, strict=True):
            turn.draft_match = draft.match
            if draft.ids and not length:
                self.chances.judged(draft.match, 0, 0)
        return [draft.ids[:length] for draft, length in zip(found, lengths, strict=True)]

    def lengths(self, answers: int) -> tuple[Lengths, int]:
        """How many tokens to draft behind a match with earlier text, by its length, in a step of so many answers, none
        of the others with a draft (empty: nothing is ever drafted); and the rows of a step in which several have."""
        if not self._on:
            return _NEVER, answers
        self._asked += 1
        if answers not in self._paying or self._asked % _LOOK_RUNS == 0:
            self._paying[answers] = self._lengths_that_pay(answers)
        return self._paying[answers]

    def _lengths_that_pay(self, answers: int) -> tuple[Lengths, int]:
        others = [NO_DRAFT] * (answers - 1)
        paying = {match: self._lengths([Draft(_ANY, match), *others])[0] for match in MATCHES}
        most = answers + max(paying.values())  # the kernels take more without another pass
        return np.array([paying[least] for least in _CLASSES], np.int32), -(-most // _PASS_ROWS) * _PASS_ROWS

    def tried(self, matches: Iterable[Tried]) -> None:
        """What became of these matches."""
        for one in matches:
            self.chances.judged(*one)

    def judged(self, turn: Turn, drafted: int, accepted: int) -> None:
        if drafted:
            self.chances.judged(turn.draft_match, drafted, accepted)

    def _find(self, turn: Turn) -> Draft:
        """No longer than answer and context may grow, and before a token that would end the answer."""
        if turn.undrafted == len(turn.generated):
            return NO_DRAFT
        left = turn.request.sampling.max_tokens - len(turn.generated) - 1
        draft = turn.source.find(turn.generated, min(LONGEST_DRAFT, left, self._context - turn.position - 1))
        if self._end_tokens.isdisjoint(draft.ids):
            return draft
        ends = (place for place, token in enumerate(draft.ids) if token in self._end_tokens)
        return Draft(draft.ids[: next(ends, len(draft.ids))], draft.match)

    def _beside(self, found: Rows[Draft]) -> list[int]:
        return [self._reach(draft, _BESIDE_PREFILL) for draft in found]

    def _lengths(self, found: Rows[Draft]) -> list[int]:
        plain = [0] * len(found)
        plain_cost = self.costs.of(len(found))
        if not plain_cost or not any(draft.ids for draft in found):
            return plain
        reached = [tuple(self._reach(draft, threshold) for draft in found) for threshold in _THRESHOLDS]
        tried = dict.fromkeys(reached)  # mostly they are the same few
        tried |= dict.fromkeys(_fitted(lengths, passes) for lengths in [*tried] for passes in (1, 2))
        gains = {lengths: self._gain(found, lengths) for lengths in tried if any(lengths)}
        best = max(gains, key=gains.__getitem__, default=None)
        return list(best) if best and gains[best] >= _LEAST_GAIN * len(found) / plain_cost else plain

    def _reach(self, draft: Draft, threshold: float) -> int:
        """How many of the draft's tokens are reached with a chance of at least `threshold`."""
        chance, length, reached = self.chances.of(draft.match), 0, 1.0
        while length < len(draft.ids) and reached * chance >= threshold:
            reached, length = reached * chance, length + 1
        return length

    def _gain(self, found: Rows[Draft], lengths: Rows[int]) -> float:
        """Expected tokens per millisecond."""
        tokens = 0.0
        for draft, length in zip(found, lengths, strict=True):
            chance = self.chances.of(draft.match)
            tokens += sum(chance**place for place in range(length + 1))
        return tokens / self.costs.of(len(found) + sum(lengths))


def _fitted(lengths: Rows[int], passes: int) -> tuple[int, ...]:
    """Shortened, the longest first, until the step's rows fit so many passes of the kernels, if they can."""
    shorter = list(lengths)
    for _ in range(len(lengths) + sum(lengths) - passes * _PASS_ROWS):
        longest = max(shorter)
        if not longest:
            break
        shorter[shorter.index(longest)] -= 1
    return tuple(shorter)
