"""Native embedding rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernels.program import Embed
from kernels.single import Floats, How, Weight, rows_batch, run


def embed(tokens: NDArray[np.int32], weight: Weight, scale: float = 1.0, how: How | None = None) -> Floats:
    """scale * weight[tokens], [T, cols] float32."""
    batch = replace(rows_batch(len(tokens)), tokens=tokens)
    return run(Embed(0, 0, scale), {}, 0, [weight.cols], [weight], batch=batch, how=how)
