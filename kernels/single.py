"""One operation at a time on numpy arrays: what the cpu.py of every operation builds on.

Each call builds a program of one instruction; models run whole programs instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernels.native_program import NativeProgram
from kernels.program import Instruction, KvLayerLayout, Program, RopeTable, StepBatch, TensorRef

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Weight:
    """A weight [rows, cols] of a GGML type; `data` is its bytes or a float32 array and must be contiguous."""

    data: NDArray[np.uint8] | Floats
    ggml_type: int
    rows: int
    cols: int

    @staticmethod
    def f32(values: Floats) -> Weight:
        """[n] becomes one row."""
        values = np.ascontiguousarray(values, np.float32)
        rows = values.shape[0] if values.ndim == 2 else 1
        return Weight(values, 0, rows, values.shape[-1])

    def ref(self) -> TensorRef:
        return TensorRef(self.data.ctypes.data, self.ggml_type, self.rows, self.cols)


@dataclass(frozen=True)
class How:
    """Where and how an operation runs. `poison` fills all scratch with NaN beforehand."""

    threads: int = 1
    isa: str | None = None
    poison: bool = True


def rows_batch(rows: int, start: int = 0) -> StepBatch:
    """One sequence of `rows` rows from position `start`, without pages."""
    return StepBatch(
        tokens=np.zeros(rows, np.int32),
        roles=np.zeros(rows, np.uint8),
        seq_rows=np.array([0, rows], np.int32),
        seq_start=np.array([start], np.int32),
        pages=np.zeros((1, 0), np.uint64),
        seq_write=np.ones(1, np.uint8),
        out_rows=np.zeros(0, np.int32),
        cancel=np.zeros(1, np.uint8),
    )


def with_positions(positions: Sequence[int]) -> StepBatch:
    """Each row a sequence of its own at the given position, without pages."""
    count = len(positions)
    return replace(
        rows_batch(count),
        seq_rows=np.arange(count + 1, dtype=np.int32),
        seq_start=np.array(positions, np.int32),
        pages=np.zeros((count, 0), np.uint64),
        seq_write=np.ones(count, np.uint8),
    )


def run(
    op: Instruction,
    given: Mapping[int, Floats],
    out: int,
    widths: Sequence[int],
    weights: Sequence[Weight] = (),
    layers: Sequence[KvLayerLayout] = (),
    ropes: Sequence[RopeTable] = (),
    page_tokens: int = 64,
    batch: StepBatch | None = None,
    how: How | None = None,
) -> Floats:
    """Buffer `out` after `op` ran with the buffers `given`."""
    how = how or How()
    program = Program(
        widths=tuple(widths),
        tensors=tuple(w.ref() for w in weights),
        kv_layers=tuple(layers),
        page_tokens=page_tokens,
        ropes=tuple(ropes),
        instructions=(op,),
        vocabulary=1,
        channels=widths[0],
    )
    rows = len(next(iter(given.values()))) if given else 0
    native = NativeProgram(program, how.threads, how.isa)
    return native.run_on(batch or rows_batch(rows), given, [out], how.poison)[out]
