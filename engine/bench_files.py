"""Files of a store as the benchmark needs them: a second store on the same segments, the file cache, plain reading."""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

_READ_BYTES = 4 << 20


def second_store(store: Path, target: Path) -> Path:
    """The same segments (the files themselves, in the file cache as writing them left them) and a copy of the index."""

    def place(source: str, copy: str) -> None:
        if Path(source).parent.name == "segments":
            os.link(source, copy)
        else:
            shutil.copy2(source, copy)

    return Path(shutil.copytree(store, target, copy_function=place))


def segments(store: Path) -> list[Path]:
    """All segment files, oldest first."""
    return sorted((store / "segments").iterdir())


def drop_file_cache(store: Path) -> None:
    """Nothing of the segments is in memory any more, as far as the system obeys."""
    for path in segments(store):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_share(store: Path) -> float:
    """The part of the segments that is in the file cache, 0 to 1: what any process has mapped stays there."""
    found = [_cached_pages(path) for path in segments(store) if path.stat().st_size]
    return float(np.concatenate(found).mean()) if found else 0.0


def _cached_pages(path: Path) -> npt.NDArray[np.bool_]:
    """By page, in order. See mincore(2)."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        view = np.frombuffer(memory, np.uint8)
        pages = np.zeros(-(-len(view) // mmap.PAGESIZE), np.uint8)
        start, size = ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(len(view))
        failed = ctypes.CDLL(None).mincore(start, size, pages.ctypes.data_as(ctypes.c_void_p))
        del view
    if failed:
        raise OSError(f"The file cache does not tell what it holds of {path}.")
    return pages & 1 > 0


def sequential_mb_s(store: Path) -> float:
    """Plain reading of the same files, nothing cached: one stream of large requests."""
    drop_file_cache(store)
    buffer, total, started = bytearray(_READ_BYTES), 0, time.perf_counter()
    for path in segments(store):
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                total += count
    return total / 1e6 / (time.perf_counter() - started)
