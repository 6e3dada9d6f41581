"""A Program bound to native code: one call per step, the GIL released inside."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernels.encoding import encode
from kernels.program import Head, Program, StepBatch, StepResult

# Raised whenever a change alters the last bits of any result.
NUMERICS_REVISION = 5
LOWEST_PRIORITY = 19  # as a nice value

Floats = NDArray[np.float32]
_COMPLETED, _PARKED = 1, 2  # outcomes of a native step

# Tokens of one sequence in a step: ids, roles (0 prompt, 1 generated; as many), position of the first, block table
# uint64 [pages], whether K and V are stored, and how many of the last rows want logits.
TokenRun: TypeAlias = tuple[Sequence[int], Sequence[int], int, NDArray[np.uint64], bool, int]


class Draw(NamedTuple):
    """How `decode` draws the tokens of a sequence and drafts more behind them, and what ends it.

    Attributes:
        sampler: see kernels/sample/cpu.py.
        ids: int32, all of the conversation so far, the answer from `answer` on.
        most: so many tokens may be drawn, at least as many as its run has rows; there is room for as many rows.
        ends: int32, ascending ids behind which nothing may follow; struck: int32 ids that are not drawn.
        shortest, lengths: int32, by the length of a match with the end of what there is, so many tokens behind it are
            drafted; looked for are matches of `shortest` ids up to the last of `lengths`.
        match: length of that behind which the tokens of the first step were drafted.
    """

    sampler: Any
    ids: Any
    answer: int
    most: int
    ends: NDArray[np.int32]
    struck: NDArray[np.int32]
    shortest: int = 1
    lengths: NDArray[np.int32] = np.zeros(0, np.int32)
    match: int = 0


class Tried(NamedTuple):
    """Of the tokens behind a match of so many, `drafted` went into a step, and `accepted` of them were drawn."""

    match: int
    drafted: int
    accepted: int


class Decoded(NamedTuple):
    """`tokens`: what each sequence drew in steps of so many `milliseconds` and `rows`; `tries`: of each, the matches
    with earlier text; `looked`: there is nothing to draft behind the last tokens."""

    tokens: list[list[int]]
    tries: list[list[Tried]]
    milliseconds: list[float]
    rows: list[int]
    looked: bool


@cache
def native_module() -> Any:
    """kernels._native, loaded when first needed."""
    return importlib.import_module("kernels._native")


@cache
def _nobody_else() -> int:
    """References that are counted where a local variable alone holds an array. From Python 3.14 on the call that counts
    them has none of its own."""
    array = np.empty(0)
    return sys.getrefcount(array)


def available_isas() -> tuple[str, ...]:
    """Instruction set levels that this CPU can run, best first."""
    return tuple(native_module().levels())


def default_isa() -> str:
    """PAGEKEEP_ISA if set, else the best level of this CPU. ValueError when it cannot run here."""
    levels = available_isas()
    wanted = os.environ.get("PAGEKEEP_ISA") or levels[0]
    if wanted not in levels:
        raise ValueError(f"PAGEKEEP_ISA={wanted} cannot run on this CPU; available: {', '.join(levels)}")
    return wanted


def lower_thread_priority() -> None:
    """The calling thread computes where others leave room (Linux; elsewhere nothing happens). It must not hold the GIL
    for long: others would wait for a thread that waits for them."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)


class NativeProgram:
    """Not thread-safe: one step at a time. Owns its scratch, which grows to the largest batch seen."""

    def __init__(self, program: Program, threads: int, isa: str | None = None) -> None:
        """ValueError names the instruction, tensor or layer that is wrong; RuntimeError: more threads than the system
        gives. `threads` includes the caller's."""
        if threads < 1:
            raise ValueError(f"{threads} threads")
        encoded = encode(program)
        self.program = program
        self.threads = threads
        self.isa = isa or default_isa()
        self._parked: tuple[StepBatch | None, Floats, Floats] | None = None
        self._spare: tuple[Floats, Floats] | None = None
        self._has_head = any(isinstance(op, Head) for op in program.instructions)
        self._executor = native_module().Executor(
            list(program.widths),
            encoded.tensors,
            encoded.layers,
            encoded.ropes,
            encoded.ops,
            encoded.reals,
            program.page_tokens,
            program.vocabulary,
            program.channels,
            threads,
            self.isa,
        )

    def step(self, batch: StepBatch) -> StepResult:
        """Run all instructions for the batch. ValueError on wrong dtypes, shapes, positions or pages."""
        return self._run(batch, parkable=False)

    def step_parkable(self, batch: StepBatch) -> StepResult:
        """As `step`; PARK lets it wait for `resume`, while other steps run. Until then `batch` names where its pages
        are: a caller that moves them changes `batch.pages`."""
        return self._run(batch, parkable=True)

    def step_runs(self, runs: Sequence[TokenRun], cancel: NDArray[np.uint8], *, parkable: bool = False) -> StepResult:
        """The same for runs of tokens, one for each sequence: quicker, as no arrays are made for the step. Until a
        parked one is resumed `cancel` must live; its pages may move, see `resume`."""
        logits, hidden = self._outputs(sum(run[5] for run in runs))
        outcome = self._executor.step_runs(runs, cancel, logits, hidden, parkable)
        return self._result(outcome, None, logits, hidden)

    def decode(
        self,
        runs: Sequence[TokenRun],
        draws: Sequence[Draw],
        cancel: NDArray[np.uint8],
        rows: int,
        milliseconds: float,
    ) -> Decoded:
        """Steps that follow each other, of `rows` rows at most after the first. It begins with runs of generated
        tokens: one and what is drafted behind it, all wanted. What is drawn is fed to the next step, with new drafts.
        Ends behind a step where a draw wants it, where `cancel` is set (STOP ends the step in progress too, which then
        counts for nothing), or where the next would end later than `milliseconds` from now. ValueError as for steps."""
        if not self._has_head:
            raise ValueError("the program has no Head")
        tokens, tries, times, counts, looked = self._executor.decode(runs, draws, cancel, rows, milliseconds)
        return Decoded(tokens, [[Tried(*one) for one in tried] for tried in tries], times, counts, looked)

    def resume(self, milliseconds: float = 0.0, tables: Sequence[NDArray[np.uint64]] | None = None) -> StepResult:
        """Go on with the parked step; the result is that of an undisturbed one. After `milliseconds` (0: never) it is
        parked again. `tables`: where the pages of its runs are now. ValueError: there is none."""
        if self._parked is None:
            raise ValueError("no step is parked")
        if tables is not None:
            self._executor.move_pages(tables)
        (batch, logits, hidden), self._parked = self._parked, None
        return self._result(self._executor.resume(milliseconds), batch, logits, hidden)

    def drop(self) -> None:
        """Forget the parked step, if there is one."""
        self._parked = None
        self._executor.drop()

    def _run(self, batch: StepBatch, parkable: bool) -> StepResult:
        logits, hidden = self._outputs(len(batch.out_rows))
        outcome = self._executor.step(
            batch.tokens,
            batch.roles,
            batch.seq_rows,
            batch.seq_start,
            batch.pages,
            batch.seq_write,
            batch.out_rows,
            batch.cancel,
            logits,
            hidden,
            parkable,
        )
        return self._result(outcome, batch, logits, hidden)

    def _outputs(self, rows: int) -> tuple[Floats, Floats]:
        """Arrays for logits and hidden vectors: those of the step before, where nobody holds them any more (fresh ones
        are fresh memory of the system, which takes long to touch)."""
        if self._spare is not None:
            (logits, hidden), self._spare = self._spare, None
            free = sys.getrefcount(logits) == sys.getrefcount(hidden) == _nobody_else()
            if free and len(logits) == rows:
                return logits, hidden
        width, channels = (self.program.vocabulary, self.program.channels) if self._has_head else (0, 0)
        return np.empty((rows, width), np.float32), np.empty((rows, channels), np.float32)

    def _result(self, outcome: int, batch: StepBatch | None, logits: Floats, hidden: Floats) -> StepResult:
        parked = outcome == _PARKED
        if parked:
            self._parked = batch, logits, hidden  # native code holds pointers into them
        else:
            self._spare = logits, hidden
        return StepResult(outcome == _COMPLETED, logits, hidden, parked)

    def head(self, hidden: Floats) -> Floats:
        """Logits [R, vocabulary] of hidden vectors [R, channels] that a step returned."""
        if not self._has_head:
            raise ValueError("the program has no Head")
        _check("hidden", hidden, np.dtype(np.float32), (None, self.program.channels))
        logits = np.empty((len(hidden), self.program.vocabulary), np.float32)
        if len(hidden):
            self._executor.head(hidden, logits)
        return logits

    def load(self, index: int, values: Floats, rows: int, poison: bool = False) -> None:
        """Set a buffer [rows, width] before a step of `rows` rows; `poison` fills all scratch with NaN first."""
        self._prepare(rows, poison)
        self._set(index, values, rows)

    def _prepare(self, rows: int, poison: bool) -> None:
        self._executor.reserve(rows)
        if poison:
            self._executor.fill(float("nan"))

    def _set(self, index: int, values: Floats, rows: int) -> None:
        _check(f"buffer {index}", values, np.dtype(np.float32), (rows, self.program.widths[index]))
        self._executor.load_buffer(index, values)

    def run_on(
        self, batch: StepBatch, given: Mapping[int, Floats], wanted: Sequence[int], poison: bool = False
    ) -> dict[int, Floats]:
        """Run with buffers set beforehand and return others: the way single operations are called and tested.

        `poison` fills all scratch with NaN first.
        """
        rows = len(batch.tokens)
        for _ in range(2 if poison else 1):
            self._prepare(rows, poison)
            for index, values in given.items():
                self._set(index, values, rows)
            self.step(batch)  # with poison twice: the first step only makes all scratch exist
        results = {i: np.empty((rows, self.program.widths[i]), np.float32) for i in wanted}
        for index, out in results.items():
            self._executor.read_buffer(index, out)
        return results


def _check(name: str, array: NDArray[Any], dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        raise ValueError(f"{name} must be a {dtype} array")
    found = array.shape
    if len(found) != len(shape) or any(w is not None and w != s for w, s in zip(shape, found, strict=True)):
        raise ValueError(f"{name} has shape {found}, expected {shape}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} must be contiguous")
