"""A model without turns: token rows in, logits out. For parity checks and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from engine.errors import EngineError
from engine.kv.cache import KvCache
from engine.kv.sequence import Sequence
from engine.loading import LoadedModel, ModelHandle, load
from engine.messages import EngineSettings, Role
from engine.runner import RowRun, Runner

Floats = npt.NDArray[np.float32]


class OfflineModel:
    """One sequence at a time on the calling thread; KV in memory only. Use as a context manager."""

    def __init__(self, path: Path, settings: EngineSettings) -> None:
        self.model: LoadedModel = load(path, settings, lambda stage: None)
        self.cache = KvCache(
            self.model.layout, self.model.fingerprint, self.model.numerics, None, settings.ram_budget_bytes
        )
        self.sequence: Sequence = Sequence(self.cache)
        self._runner = Runner(self.model.backend, settings.micro_batch)
        self._chunk = settings.prefill_chunk

    def __enter__(self) -> OfflineModel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sequence.release()
        self.model.gguf.close()

    def feed(self, ids: list[int] | tuple[int, ...], *, all_logits: bool = False, role: Role = Role.PROMPT) -> Floats:
        """Appends tokens, chunk by chunk. Logits [1 or len(ids), vocabulary]: of the last token, or of all."""
        rows = []
        for start in range(0, len(ids), self._chunk):
            piece = tuple(ids[start : start + self._chunk])
            last = start + len(piece) == len(ids)
            rows.append(self._step(piece, len(piece) if all_logits else int(last), role))
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def _step(self, ids: tuple[int, ...], outputs: int, role: Role) -> Floats:
        sequence, roles = self.sequence, (int(role),) * len(ids)
        sequence.reserve(len(ids))
        run = RowRun(sequence, ids, roles, sequence.num_tokens, outputs=outputs)
        logits = self._runner.step([run]).logits
        sequence.commit(ids, roles)
        return logits


def run_logits(
    path: Path, tokens: list[int], greedy: int, settings: EngineSettings, warn: Callable[[str], None] | None = None
) -> tuple[Floats, list[int]]:
    """Logits of a whole token list and its greedy continuation. `warn` is called with what the model's loading says.

    Returns:
        logits [len(tokens), vocabulary] float32, and the `greedy` ids that follow.
    """
    need = len(tokens) + greedy
    with OfflineModel(path, _roomy(settings, need)) as model:
        if warn is not None:
            _tell(model.model.handle, need, warn)
        _check_ids(tokens, model.model.handle.spec.vocabulary)
        logits = model.feed(tokens, all_logits=True)
        following = [int(logits[-1].argmax())] if greedy else []
        while len(following) < greedy:
            following.append(int(model.feed(following[-1:])[0].argmax()))
    return logits, following


def _tell(handle: ModelHandle, tokens: int, warn: Callable[[str], None]) -> None:
    for text in handle.warnings:
        warn(text)
    if tokens > handle.context:
        warn(f"{tokens:,} tokens are more than the context of {handle.context:,}; they are computed all the same.")


def _roomy(settings: EngineSettings, tokens: int) -> EngineSettings:
    """Parity runs are short: a budget for them is never a reason to fail."""
    budget = max(settings.ram_budget_bytes, tokens << 20)
    return replace(settings, ram_budget_bytes=budget)


def _check_ids(tokens: list[int], vocabulary: int) -> None:
    if not tokens:
        raise EngineError("There are no tokens.", "The list of ids is empty.", "Give at least one token id.")
    wrong = [token for token in tokens if not 0 <= token < vocabulary]
    if wrong:
        raise EngineError(
            "A token id does not exist.",
            f"{wrong[0]} is outside the vocabulary of {vocabulary:,} tokens.",
            "Use ids of this model's tokenizer.",
        )
