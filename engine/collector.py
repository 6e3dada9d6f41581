"""The collector of cycles, kept from looking through what is made in bulk and stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 1500  # objects, twice what the collector waits for otherwise


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """While many objects are made that stay: looking through them for cycles takes long. On several threads at once it
    ends with the first of them. After many (not a few: young cycles that nobody needs are to go soon) all that is young
    counts as old: it is not walked through now."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
