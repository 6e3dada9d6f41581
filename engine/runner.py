"""The runner: a loaded model and the one way to push rows of tokens through it."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from itertools import accumulate
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from engine.kv.sequence import Sequence
from kernels.native_program import Decoded, Draw, TokenRun
from kernels.program import StepBatch, StepResult


class Backend(Protocol):
    """What runs a whole step: native CPU code, or the float32 reference."""

    def step(self, batch: StepBatch) -> StepResult: ...

    def head(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]: ...


@runtime_checkable
class RunsBackend(Backend, Protocol):
    """One that takes runs of tokens as they are, and whose steps can wait at any unit of work while others run: see
    NativeProgram."""

    def step_runs(
        self, runs: Rows[TokenRun], cancel: npt.NDArray[np.uint8], *, parkable: bool = False
    ) -> StepResult: ...

    def decode(
        self, runs: Rows[TokenRun], draws: Rows[Draw], cancel: npt.NDArray[np.uint8], rows: int, milliseconds: float
    ) -> Decoded: ...

    def resume(self, milliseconds: float = 0.0, tables: Rows[npt.NDArray[np.uint64]] | None = None) -> StepResult: ...

    def drop(self) -> None: ...


class RowRun(NamedTuple):
    """Consecutive tokens of one sequence in a step.

    Attributes:
        ids, roles: one entry per token.
        start: position of the first token; room for all of them is reserved in `sequence`.
        write: False for the last token of a prompt whose KV is complete: it only reads.
        outputs: how many of the last rows need logits.
    """

    sequence: Sequence
    ids: tuple[int, ...]
    roles: tuple[int, ...]
    start: int
    write: bool = True
    outputs: int = 0


class Runner:
    """Turns row runs into batches for the backend, of at most `micro_batch` rows each (0: one batch).

    Attributes:
        cancel: uint8[1]; another thread sets it to STOP or PARK (kernels/program.py) the step in progress.
    """

    def __init__(self, backend: Backend, micro_batch: int = 0) -> None:
        self._backend = backend
        self._native = backend if isinstance(backend, RunsBackend) else None
        self._micro_batch = micro_batch
        self.cancel: npt.NDArray[np.uint8] = np.zeros(1, np.uint8)

    def step(self, runs: Rows[RowRun], *, parkable: bool = False) -> StepResult:
        """One step. `logits` and `hidden` hold the wanted rows of all runs, run after run. If `parkable` it may come
        back `parked` and wait for `resume` with the same runs, or for `drop`."""
        parts = _parts(runs, self._micro_batch)
        if len(parts) == 1:
            return self._step(parts[0], parkable)
        results = []
        for part in parts:  # never parked: what is before it would have to be kept
            results.append(self._step(part, parkable=False))
            if not results[-1].completed:
                return results[-1]
        logits = np.concatenate([result.logits for result in results])
        return StepResult(True, logits, np.concatenate([result.hidden for result in results]))

    def _step(self, runs: Rows[RowRun], parkable: bool) -> StepResult:
        if self._native is None:
            return self._backend.step(_batch(runs, self.cancel))
        return self._native.step_runs(_given(runs), self.cancel, parkable=parkable)

    def can_decode(self, rows: int) -> bool:
        """Whether `decode` can be called for steps of so many rows."""
        return self._native is not None and rows <= (self._micro_batch or rows)

    def decode(self, runs: Rows[RowRun], draws: Rows[Draw], rows: int, milliseconds: float) -> Decoded:
        """Several steps in one call, see NativeProgram: the runs' tokens and drafts, and what is drawn behind them."""
        assert self._native is not None, "see can_decode"
        rows = min(rows, self._micro_batch or rows)
        return self._native.decode(_given(runs), draws, self.cancel, rows, milliseconds)

    def resume(self, runs: Rows[RowRun], milliseconds: float = 0.0) -> StepResult:
        """Goes on with the parked step, whose pages may have moved since; parked again after so long (0: never)."""
        assert self._native is not None, "no step is parked"
        return self._native.resume(milliseconds, [run.sequence.block_table() for run in runs])

    def drop(self) -> None:
        """The parked step will not be resumed."""
        if self._native is not None:
            self._native.drop()

    def head(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits [vocabulary] of one final hidden vector [channels]."""
        logits: npt.NDArray[np.float32] = self._backend.head(hidden.reshape(1, -1))[0]
        return logits


def _given(runs: Rows[RowRun]) -> list[TokenRun]:
    return [(run.ids, run.roles, run.start, run.sequence.block_table(), run.write, run.outputs) for run in runs]


def _parts(runs: Rows[RowRun], most: int) -> Rows[Rows[RowRun]]:
    """The runs in order, cut so that each part has at most `most` rows (0: no limit)."""
    if not most:
        return (runs,)
    parts: list[list[RowRun]] = [[]]
    room = most
    for run in runs:
        begin = 0
        while begin < len(run.ids):
            end = min(len(run.ids), begin + room)
            parts[-1].append(_cut(run, begin, end))
            room, begin = room - (end - begin), end
            if not room:
                parts.append([])
                room = most
    return [part for part in parts if part]


def _cut(run: RowRun, begin: int, end: int) -> RowRun:
    outputs = max(0, end - max(begin, len(run.ids) - run.outputs))
    return RowRun(run.sequence, run.ids[begin:end], run.roles[begin:end], run.start + begin, run.write, outputs)


def _batch(runs: Rows[RowRun], cancel: npt.NDArray[np.uint8]) -> StepBatch:
    ends = list(accumulate((len(run.ids) for run in runs), initial=0))
    outputs = (range(end - run.outputs, end) for run, end in zip(runs, ends[1:], strict=True))
    return StepBatch(
        tokens=np.array([token for run in runs for token in run.ids], np.int32),
        roles=np.array([role for run in runs for role in run.roles], np.uint8),
        seq_rows=np.array(ends, np.int32),
        seq_start=np.array([run.start for run in runs], np.int32),
        pages=_block_tables(runs),
        seq_write=np.array([run.write for run in runs], np.uint8),
        out_rows=np.array([row for rows in outputs for row in rows], np.int32),
        cancel=cancel,
    )


def _block_tables(runs: Rows[RowRun]) -> npt.NDArray[np.uint64]:
    tables = [run.sequence.block_table() for run in runs]
    if len(tables) == 1:
        return tables[0].reshape(1, -1).copy()
    pages = np.zeros((len(tables), max(len(table) for table in tables)), np.uint64)
    for row, table in zip(pages, tables, strict=True):
        row[: len(table)] = table
    return pages
