"""The runner: a loaded model and the one way to push rows of tokens through it."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from engine.kv.sequence import Sequence
from kernels.program import StepBatch, StepResult


class Backend(Protocol):
    """What runs a whole step: native CPU code, or the float32 reference."""

    def step(self, batch: StepBatch) -> StepResult: ...

    def head(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]: ...


@runtime_checkable
class ParkingBackend(Backend, Protocol):
    """One whose steps can wait between two layers while others run: see NativeProgram."""

    def step_parkable(self, batch: StepBatch) -> StepResult: ...

    def resume(self, milliseconds: float = 0.0) -> StepResult: ...

    def drop(self) -> None: ...


@dataclass(frozen=True)
class RowRun:
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
        self._parking = backend if isinstance(backend, ParkingBackend) else None
        self._micro_batch = micro_batch
        self._parked: StepBatch | None = None
        self.cancel: npt.NDArray[np.uint8] = np.zeros(1, np.uint8)

    def step(self, runs: Rows[RowRun], *, parkable: bool = False) -> StepResult:
        """One step. `logits` and `hidden` hold the wanted rows of all runs, run after run. If `parkable` it may come
        back `parked` and wait for `resume` with the same runs, or for `drop`."""
        results = []
        parts = _parts(runs, self._micro_batch)
        for part in parts:
            results.append(self._step(_batch(part, self.cancel), parkable and len(parts) == 1))
            if not results[-1].completed:
                return results[-1]
        if len(results) == 1:
            return results[0]
        logits = np.concatenate([result.logits for result in results])
        return StepResult(True, logits, np.concatenate([result.hidden for result in results]))

    def _step(self, batch: StepBatch, parkable: bool) -> StepResult:
        """A part of a step is never parked: what is before it would have to be kept."""
        if not parkable or self._parking is None:
            return self._backend.step(batch)
        result = self._parking.step_parkable(batch)
        if result.parked:
            self._parked = batch
        return result

    def resume(self, runs: Rows[RowRun], milliseconds: float = 0.0) -> StepResult:
        """Goes on with the parked step, whose pages may have moved since; parked again after so long (0: never)."""
        assert self._parking is not None
        assert self._parked is not None, "no step is parked"
        self._parked.pages[:] = _block_tables(runs)
        result = self._parking.resume(milliseconds)
        if not result.parked:
            self._parked = None
        return result

    def drop(self) -> None:
        """The parked step will not be resumed."""
        if self._parking is not None:
            self._parking.drop()
        self._parked = None

    def head(self, hidden: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Logits [vocabulary] of one final hidden vector [channels]."""
        logits: npt.NDArray[np.float32] = self._backend.head(hidden.reshape(1, -1))[0]
        return logits


def _parts(runs: Rows[RowRun], most: int) -> list[list[RowRun]]:
    """The runs in order, cut so that each part has at most `most` rows (0: no limit)."""
    if not most:
        return [list(runs)]
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
    """Between two steps nothing computes: plain lists are quicker than numpy for a few rows."""
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
