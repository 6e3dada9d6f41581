"""Pages of 2 MB for a model file that is computed with: fewer page table walks. Linux; elsewhere nothing is asked for.

On such a mapping the system reads 2 MB or more for each page that is missing. Where the file does not stay in memory,
every expert that comes back would push out what is needed next, so there the file keeps its small pages.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from pathlib import Path

_MEMORY = Path("/proc/meminfo")
_MOST_SHARE = 0.5  # of the memory that is available; the file's own pages in the cache count as that


def worth_asking(size: int) -> bool:
    """Whether a file of `size` bytes stays in memory well."""
    return hasattr(mmap, "MADV_HUGEPAGE") and size < _MOST_SHARE * _available()


def ask(mapping: mmap.mmap) -> None:
    """What is read into the file cache from here on lies in large pages where the system has them for files."""
    with contextlib.suppress(OSError):  # a kernel without them
        mapping.madvise(mmap.MADV_HUGEPAGE)


def _available() -> int:
    """Bytes; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", _MEMORY.read_text(), re.MULTILINE)
        return int(found[1]) << 10 if found else 0
    return 0
