"""Native sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernels.native_program import native_module
from kernels.sample.rule import Rule

# (logits [R, vocabulary] float32, row, ids before `position`, position) to the id at `position`.
Pick: TypeAlias = Callable[[NDArray[np.float32], int, list[int], int], int]

_SEEDS = 1 << 64


def picker(rule: Rule) -> Pick:
    """Draws the tokens of one answer. What it returns raises ValueError: no such row, an id without a logit."""
    sampler = native_module().Sampler(
        rule.temperature, rule.top_k, rule.top_p, rule.min_p, rule.repetition_penalty, rule.frequency_penalty,
        rule.presence_penalty, rule.penalty_window, rule.seed % _SEEDS,
    )  # fmt: skip
    pick: Pick = sampler.pick
    return pick
