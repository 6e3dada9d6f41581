"""Speed over context depth, as a table: prompt and generation rates with more and more tokens in the KV.

Columns as in ik_llama.cpp's sweep-bench: PP, TG tokens per row, N_KV in the cache before, seconds, tokens per second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.messages import EngineSettings, Role
from engine.offline import OfflineModel


@dataclass(frozen=True)
class SweepRow:
    """Tokens, seconds, and tokens per second."""

    pp: int
    tg: int
    n_kv: int
    t_pp: float
    s_pp: float
    t_tg: float
    s_tg: float


def sweep(path: Path, settings: EngineSettings, prompt: int, generate: int, context: int) -> Iterator[SweepRow]:
    """Rows for n_kv = 0, prompt, 2 * prompt ... while a row fits `context`. Token ids are pseudo-random, fixed."""
    with OfflineModel(path, settings) as model:
        limit = min(context, model.model.handle.context)
        vocabulary = model.model.handle.spec.vocabulary
        model.feed(_ids(16, vocabulary))  # first touch of the weights is not what is measured
        model.sequence.keep_first(0)
        while model.sequence.num_tokens + prompt + generate <= limit:
            yield _row(model, prompt, generate, vocabulary)


def _row(model: OfflineModel, prompt: int, generate: int, vocabulary: int) -> SweepRow:
    depth = model.sequence.num_tokens
    model.sequence.anchors = (depth,)
    model.cache.anchor(model.sequence)  # windows behind it stay: it is gone back to
    started = time.perf_counter()
    for token in _ids(generate, vocabulary):
        model.feed([token], role=Role.GENERATED)
    generated = time.perf_counter() - started
    model.sequence.keep_first(depth)
    started = time.perf_counter()
    model.feed(_ids(prompt, vocabulary))
    prompted = time.perf_counter() - started
    return SweepRow(prompt, generate, depth, prompted, _rate(prompt, prompted), generated, _rate(generate, generated))


def _rate(tokens: int, seconds: float) -> float:
    return tokens / seconds if seconds > 0 else 0.0


def _ids(count: int, vocabulary: int) -> list[int]:
    return [(7919 * (index + 1)) % vocabulary for index in range(count)]
