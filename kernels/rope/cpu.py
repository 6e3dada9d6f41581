"""Native rotary embedding."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.program import Rope, RopeTable
from kernels.single import Floats, How, run, with_positions


def rope(
    x: Floats, positions: Sequence[int], heads: int, table: RopeTable, first: int = 0, how: How | None = None
) -> Floats:
    """x [T, heads * head_dim] rotated by each row's position, channels from `first` on."""
    op = Rope(0, heads, x.shape[1] // heads, 0, first)
    return run(op, {0: x}, 0, [x.shape[1]], ropes=[table], batch=with_positions(positions), how=how)
