"""Guarded memory: mapped files that may be cut short or fail while they are read. Linux; elsewhere nothing is guarded.

Reading a page that is gone gives zeros instead of ending the process; who read asks afterwards what was lost.
"""

from __future__ import annotations

import ctypes
import functools
import weakref

import numpy as np
from numpy.typing import NDArray

from kernels.native_program import native_module

MOST = 512  # places in use: each mapped file also holds a descriptor, of which a process often has no more than 1,024


def guard(owner: object, memory: NDArray[np.uint8]) -> bool:
    """Guards `memory` while `owner`, which keeps it mapped, lives; False if that is not possible, or too many are."""
    number = native_module().guard(_address(memory), len(memory))  # the lowest that is free
    if number >= MOST:
        native_module().unguard(number)
        return False
    if number >= 0:
        weakref.finalize(owner, native_module().unguard, number).atexit = False
    return bool(number >= 0)


def lost_count() -> int:
    """Grows whenever a page of guarded memory was lost."""
    return int(native_module().lost_count())


def is_lost(memory: NDArray[np.uint8]) -> bool:
    """Whether some of it was met and found gone: what was read of it may be zeros."""
    return bool(native_module().lost(_address(memory), len(memory)))


def touch_in_background(memory: NDArray[np.uint8]) -> None:
    """Makes fresh memory (zeros) ready, on a thread of low priority; returns when it is done.

    Releases the GIL.
    """
    _library().pk_touch_in_background(ctypes.c_uint64(_address(memory)), ctypes.c_uint64(len(memory)))


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(native_module().__file__)


def _address(memory: NDArray[np.uint8]) -> int:
    return int(memory.__array_interface__["data"][0])
