"""Native choice of experts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernels.program import Route
from kernels.single import Floats, How, Weight, run


def route(
    logits: Floats, op: Route, bias: Floats | None = None, how: How | None = None
) -> tuple[NDArray[np.int64], Floats]:
    """(ids, weights), both [T, op.used], of router logits [T, op.experts]; buffers and tensors of `op` are replaced."""
    op = replace(op, out=1, src=0, bias=None if bias is None else 0)
    weights = [] if bias is None else [Weight.f32(bias)]
    out = run(op, {0: logits}, 1, [op.experts, 2 * op.used], weights, how=how)
    return out[:, : op.used].astype(np.int64), out[:, op.used :]
