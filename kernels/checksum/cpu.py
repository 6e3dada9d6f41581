"""Native checksums: all layers of a page in one call without the GIL, so that other threads go on meanwhile.

One call of the xxhash package a layer, 1,860 for 184 MB, made reading threads and the engine queue for the GIL.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernels.checksum import reference
from kernels.native_program import default_isa, native_module

SHORTEST = 241  # the native code knows the algorithm for long inputs


def layers_intact(
    payload: NDArray[np.uint8], pieces: NDArray[np.int64], sums: bytes, isa: str | None = None
) -> bool:
    """See reference.layers_intact."""
    if len(sums) != 16 * len(pieces) or not _inside(pieces, len(payload)):
        raise ValueError("pieces and sums do not fit the payload")
    if len(pieces) and int((pieces[:, 1] - pieces[:, 0]).min()) < SHORTEST:
        return reference.layers_intact(payload, pieces, sums)
    intact: bool = native_module().layers_intact(payload, pieces, sums, isa or default_isa())
    return intact


def _inside(pieces: NDArray[np.int64], size: int) -> bool:
    return bool((pieces[:, 0] >= 0).all() and (pieces[:, 0] <= pieces[:, 1]).all() and (pieces[:, 1] <= size).all())
