"""Native sampling."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.native_program import native_module
from kernels.sample.rule import Rule

_SEEDS = 1 << 64


class Sampler(Protocol):
    """Draws the tokens of one answer."""

    def pick(self, logits: NDArray[np.float32], row: int, recent: list[int], position: int, /) -> int:
        """The id at `position` by a row of logits [R, vocabulary]; `recent`: the ids before it. ValueError: no such
        row, an id without a logit."""


def sampler(rule: Rule) -> Sampler:
    made: Sampler = native_module().Sampler(
        rule.temperature, rule.top_k, rule.top_p, rule.min_p, rule.repetition_penalty, rule.frequency_penalty,
        rule.presence_penalty, rule.penalty_window, rule.seed % _SEEDS,
    )  # fmt: skip
    return made
