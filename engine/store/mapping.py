"""Pages straight from the segment files: mapped read-only, populated by a reading thread before anybody touches them.

Nothing is copied, and the memory is the system's file cache: it lives once, however many processes use it. Where the
cache holds a stretch of 2 MB in one piece, and a mapping covers all of it, one entry maps it: populating 184 MB took
0.14 ms instead of 8.5 (ext4, kernel 6.18), and checking it 6 instead of 9.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskRecord, Location
from engine.store.record import STRETCH
from kernels.guarded import guard

Bytes = npt.NDArray[np.uint8]
_POPULATE_READ = 22  # madvise(2), since Linux 5.14; mmap has no name for it


@functools.cache
def can_map() -> bool:
    """Whether this system can populate a mapping on request; page faults inside kernels are no way to read a disk."""
    if not hasattr(mmap, "MADV_HUGEPAGE") or mmap.ALLOCATIONGRANULARITY != mmap.PAGESIZE:
        return False
    with mmap.mmap(-1, mmap.PAGESIZE) as probe:
        view = np.frombuffer(probe, np.uint8)
        works = _advise(view)
        del view
    return works == 0


def populate(view: Bytes) -> None:
    """Reads the pages of a mapping that are not in memory, and maps them all. OSError: the disk fails.

    Releases the GIL.
    """
    while code := _advise(view):
        if code not in (errno.EINTR, errno.EAGAIN):
            raise OSError(code, os.strerror(code))


def gather(path: Path, offsets: Sequence[int]) -> None:
    """Has the file cache keep durable stretches that were written in parts in one piece each: they are read again.

    Of 182 MB that were written page by page populating took 13 ms before and 0.1 after, and checking a third less.
    Where it fails they stay in parts.
    """
    if offsets and can_map():
        with contextlib.suppress(OSError, ValueError):  # the latter from mmap: the file was cut short
            _read_anew(path, offsets)


def _read_anew(path: Path, offsets: Sequence[int]) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for start in offsets:
            os.posix_fadvise(descriptor, start, STRETCH, os.POSIX_FADV_DONTNEED)
            with mmap.mmap(descriptor, STRETCH, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ, offset=start) as memory:
                memory.madvise(mmap.MADV_HUGEPAGE)
                view = np.frombuffer(memory, np.uint8)
                populate(view)
                del view
    finally:
        os.close(descriptor)


def in_file_cache(view: Bytes | None) -> bool:
    """Whether the middle of a mapped record is in memory; all of it mostly is then. Touches nothing."""
    if view is None:
        return False
    address = view.__array_interface__["data"][0] + len(view) // 2
    found = ctypes.c_ubyte(0)
    start = ctypes.c_void_p(address - address % mmap.PAGESIZE)
    return _libc().mincore(start, ctypes.c_size_t(1), ctypes.byref(found)) == 0 and bool(found.value & 1)


def _advise(view: Bytes) -> int:
    address = view.__array_interface__["data"][0]
    start = address - address % mmap.PAGESIZE
    size = ctypes.c_size_t(address + len(view) - start)
    return ctypes.get_errno() if _libc().madvise(ctypes.c_void_p(start), size, _POPULATE_READ) else 0


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def map_records(descriptor: Callable[[str], int], records: Sequence[DiskRecord]) -> list[Bytes | None]:
    """uint8 [record bytes] of each sealed page in one piece; None for what cannot be mapped. Touches nothing.

    `descriptor(segment)`: an open one for reading, closed here. The mappings last as long as the arrays.
    """
    views: list[Bytes | None] = [None] * len(records)
    whole = [number for number, record in enumerate(records) if not record.tail and len(record.parts) == 1]
    for run in _runs(sorted(whole, key=lambda number: _place(records[number])), records):
        first, last = records[run[0]].place, records[run[-1]].place
        try:
            start, memory = _map(descriptor(first.segment), first.offset, last.offset + last.length)
        except (OSError, ValueError):
            continue  # reading says what is wrong with it
        for number in run:
            at = records[number].place
            views[number] = memory[at.offset - start : at.offset - start + at.length]
    return views


def _place(record: DiskRecord) -> tuple[str, int]:
    return record.place.segment, record.place.offset


def _runs(numbers: Sequence[int], records: Sequence[DiskRecord]) -> Iterator[list[int]]:
    """Records of one segment, in order, less than a stretch apart."""
    run: list[int] = []
    for number in numbers:
        if run and not _near(records[run[-1]].place, records[number].place):
            yield run
            run = []
        run.append(number)
    if run:
        yield run


def _near(first: Location, second: Location) -> bool:
    return first.segment == second.segment and second.offset - first.offset - first.length < STRETCH


def _map(descriptor: int, start: int, stop: int) -> tuple[int, Bytes]:
    """A mapping of [start, stop) of a file, widened to whole stretches: where it begins, and its bytes."""
    try:
        size = os.fstat(descriptor).st_size
        if stop > size:
            raise ValueError("the file is shorter than the record")
        start -= start % STRETCH
        stop = min(size, -(-stop // STRETCH) * STRETCH)
        memory = mmap.mmap(descriptor, stop - start, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ, offset=start)
    finally:
        os.close(descriptor)
    memory.madvise(mmap.MADV_HUGEPAGE)
    view = np.frombuffer(memory, np.uint8)
    if not guard(memory, view):
        raise ValueError("too many files are mapped")
    return start, view
