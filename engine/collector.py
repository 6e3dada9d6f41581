"""The collector of cycles, kept from looking through what is made in bulk and stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """While many objects are made that stay: looking through them for cycles takes long. On several threads at once it
    ends with the first of them. Afterwards all that is young counts as old: it is not walked through now, and cycles in
    it that nobody needs go when the old is looked through."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
