"""Native output head."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernels.native_program import NativeProgram
from kernels.program import Head, Program
from kernels.single import Floats, How, Weight, rows_batch


def head(
    x: Floats,
    out_rows: NDArray[np.int32],
    norm: Floats,
    weight: Weight,
    eps: float,
    scale: float = 1.0,
    softcap: float = 0.0,
    how: How | None = None,
) -> tuple[Floats, Floats]:
    """(hidden [R, channels], logits [R, vocabulary]) of the rows `out_rows` of x [T, channels]."""
    how = how or How()
    weights = [Weight.f32(norm), weight]
    op = Head(0, 0, eps, 1, scale, softcap)
    channels = x.shape[1]
    tensors = tuple(w.ref() for w in weights)
    program = Program((channels,), tensors, (), 64, (), (op,), weight.rows, channels)
    native = NativeProgram(program, how.threads, how.isa)
    batch = replace(rows_batch(len(x)), out_rows=out_rows)
    native.load(0, x, len(x), how.poison)
    result = native.step(batch)
    return result.hidden, result.logits
