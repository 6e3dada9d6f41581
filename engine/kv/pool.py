"""PagePool: page buffers in anonymous memory, reused, within a budget. Engine thread only."""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from collections import deque
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from engine.errors import EngineError
from kernels.guarded import is_lost, touch_in_background

ALIGNMENT = 4096
_HUGE = 2 << 20
# Memory kept ready for what is computed next, which takes some 40 MB a second; restored pages are mapped.
_READY_BYTES = 8 << 20
# Slabs are advised to use huge pages: first touch of 184 MB took 17 ms instead of 76 (2-core VM, kernel
# 6.18).
_SLAB_BYTES = 4 << 20


class KvMemoryFull(EngineError):
    """The memory budget for KV is used up by pages that are in use."""


def page_stride(payload_bytes: int) -> int:
    """Bytes that a page takes in memory."""
    return -(-payload_bytes // ALIGNMENT) * ALIGNMENT


class MappedPage(NamedTuple):
    """A record in a mapped file (uint8 [record bytes]) and where in it the page's payload begins."""

    record: npt.NDArray[np.uint8]
    payload: int


class PageBuffer:
    """Memory for one page's payload.

    Attributes:
        address: absolute address, 4096-byte aligned; view: uint8 [payload bytes].
        refs: how many holders (page, sequences, kept tails, writes in progress) there are.
        filled: rows that some holder relies on; sealed: no row may change any more.
        writer: the holder that may append rows at `filled`; slab: None where the memory is a mapped file's, which has
            the whole `record` there (uint8 [record bytes]) since `mapped_at` (time.monotonic).
        spoiled: it was found wrong, or rows were copied from what was, or from memory that was lost; doubted: it itself
            was found wrong, nobody knows since when; shed: bytes that were given back to the system.
    """

    __slots__ = (
        "address", "doubted", "filled", "mapped_at", "record", "refs", "sealed", "shed", "slab", "spoiled", "view",
        "writer",
    )  # fmt: skip

    def __init__(self, slab: Slab | None, view: npt.NDArray[np.uint8]) -> None:
        self.slab = slab
        self.view = view
        self.address: int = view.__array_interface__["data"][0]
        self.shed = 0
        self.record: npt.NDArray[np.uint8] | None = None
        self.mapped_at = 0.0
        self.reset()

    def reset(self) -> None:
        self.refs = 0
        self.filled = 0
        self.sealed = self.spoiled = self.doubted = False
        self.writer: object = None

    @property
    def lost(self) -> bool:
        """Its mapped file was cut short, or the disk failed: what was read of it may be zeros."""
        return self.spoiled or (self.slab is None and is_lost(self.view))


class Slab:
    """A stretch of anonymous memory cut into page buffers."""

    def __init__(self, stride: int, payload_bytes: int, pages: int) -> None:
        size = stride * pages + _HUGE
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(memory, np.uint8)
        start = -whole.__array_interface__["data"][0] % _HUGE
        offsets = range(start, start + stride * pages, stride)
        self._memory = whole[start : start + stride * pages]
        self.buffers = [PageBuffer(self, whole[offset : offset + payload_bytes]) for offset in offsets]
        self.in_use = 0

    def let_go(self) -> None:
        """Gives all memory back to the system now: its buffers refer to it and it to them, so that it would stay until
        the collector of cycles comes by, which may be never (84 MB of 69 MB of state in files, 3,000 tokens)."""
        start = self._memory.__array_interface__["data"][0]
        _give_back(start, start + len(self._memory), mmap.MADV_DONTNEED)
        self.buffers = []

    def populate(self) -> None:
        """Touches all memory now, so that no kernel and no read has to wait for it. Releases the GIL."""
        touch_in_background(self._memory)


def _give_back(start: int, stop: int, *advices: int) -> int:
    """Bytes of whole system pages in [start, stop) that are not held in memory any more."""
    start, stop = -(-start // ALIGNMENT) * ALIGNMENT, stop // ALIGNMENT * ALIGNMENT
    advise, size = ctypes.CDLL(None).madvise, max(0, stop - start)
    done = all(advise(ctypes.c_void_p(start), ctypes.c_size_t(size), a) == 0 for a in advices) if size else False
    return size if done else 0


class PagePool:
    """Hands out page buffers; `used_bytes` never exceeds `budget_bytes`.

    Attributes:
        stride: bytes a page takes; used_bytes: held by somebody, `mapped_bytes` of it in mapped files;
            reserved_bytes: taken from the system, besides mapped files.
        spoiled: the held buffers that are.
    """

    def __init__(self, payload_bytes: int, budget_bytes: int) -> None:
        self.payload_bytes = payload_bytes
        self.stride = page_stride(payload_bytes)
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self.mapped_bytes = 0
        self.spoiled: set[PageBuffer] = set()
        self.moves = 0  # grows when pages got other addresses
        self._slabs: list[Slab] = []
        self._shed_bytes = 0
        self._free: list[PageBuffer] = []
        self._ready: deque[Slab] = deque()  # filled by the warming thread
        self._warming: threading.Thread | None = None

    @property
    def reserved_bytes(self) -> int:
        slabs = *self._slabs, *tuple(self._ready)
        return sum(len(slab.buffers) for slab in slabs) * self.stride - self._shed_bytes

    @property
    def room(self) -> int:
        """Pages that can still be allocated."""
        return max(0, (self.budget_bytes - self.used_bytes) // self.stride)

    def allocate(self) -> PageBuffer:
        """A buffer with one holder; its content is arbitrary. KvMemoryFull: the budget is used up."""
        if not self.room:
            self.refuse()
        empty = not self._free
        if empty:
            self._grow()
        buffer = self._free.pop()
        if empty:
            self.warm()
        assert buffer.slab is not None
        self._shed_bytes -= buffer.shed
        buffer.refs, buffer.shed = 1, 0
        buffer.slab.in_use += 1
        self.used_bytes += self.stride
        return buffer

    def adopt(self, mapped: MappedPage) -> PageBuffer:
        """A buffer with one holder over a payload in a mapped file. KvMemoryFull: the budget is used up."""
        if not self.room:
            self.refuse()
        buffer = PageBuffer(None, mapped.record[mapped.payload :][: self.payload_bytes])
        buffer.record, buffer.mapped_at, buffer.refs = mapped.record, time.monotonic(), 1
        buffer.sealed = True
        self.used_bytes += self.stride
        self.mapped_bytes += self.stride
        return buffer

    def refuse(self, pages: int = 1) -> NoReturn:
        budget = f"{self.used_bytes / 1e6:,.0f} MB of {self.budget_bytes / 1e6:,.0f} MB are held"
        raise KvMemoryFull(
            "The memory for conversations is used up.",
            f"{pages * self.stride / 1e6:,.0f} MB more are needed, {budget} by what is read or answered now, this too.",
            "Raise the memory budget in the preferences, take a smaller KV type, or wait for another answer's end.",
        )

    def check_holds(self, tokens: int, page_tokens: int) -> None:
        """KvMemoryFull: the budget could not hold these tokens if nothing else were in memory."""
        needed = -(-tokens // page_tokens) * self.stride
        if needed > self.budget_bytes:
            raise KvMemoryFull(
                "The memory budget for conversations is too small for this.",
                f"{tokens:,} tokens of state need {needed / 1e6:,.0f} MB, the budget {self.budget_bytes / 1e6:,.0f}.",
                "Raise the memory budget in the preferences, choose a smaller KV type, or go on with a summary.",
            )

    def retain(self, buffer: PageBuffer) -> PageBuffer:
        buffer.refs += 1
        return buffer

    def release(self, buffer: PageBuffer) -> None:
        """Gives up one hold; the last one frees the buffer for reuse."""
        assert buffer.refs > 0, "released more often than retained"
        buffer.refs -= 1
        if not buffer.refs:
            buffer.reset()
            self.spoiled.discard(buffer)
            self.used_bytes -= self.stride - buffer.shed
            if buffer.slab is None:
                self.mapped_bytes -= self.stride
                _give_back(buffer.address, buffer.address + len(buffer.view), mmap.MADV_DONTNEED)
            else:
                buffer.slab.in_use -= 1
                self._free.append(buffer)
                self._trim(buffer.slab)

    def spoil(self, buffer: PageBuffer) -> None:
        """Nobody is to rely on it any more, until it is freed."""
        buffer.spoiled = True
        self.spoiled.add(buffer)

    def passes_on(self, source: PageBuffer, target: PageBuffer) -> None:
        """Rows were copied: what was lost of them is so there too."""
        if source.lost:
            self.spoil(target)

    def shed(self, buffer: PageBuffer, start: int, stop: int) -> int:
        """Gives a part of a held buffer back to the system; it then reads as zeros. Returns the bytes, 0: none.

        Without huge pages from then on: the system would fill them up again.
        """
        if buffer.shed or not hasattr(mmap, "MADV_HUGEPAGE"):
            return 0
        advices = (mmap.MADV_NOHUGEPAGE, mmap.MADV_DONTNEED)
        buffer.shed = _give_back(buffer.address + start, buffer.address + stop, *advices)
        self.used_bytes -= buffer.shed
        self._shed_bytes += buffer.shed
        return buffer.shed

    def unshed(self, buffer: PageBuffer) -> None:
        """What was given back is going to be written again, and counts."""
        self.used_bytes += buffer.shed
        self._shed_bytes -= buffer.shed
        buffer.shed = 0

    def warm(self) -> None:
        """Gets memory ready in the background, a part of the budget at most; returns at once."""
        if self._warming is None or not self._warming.is_alive():
            self._take_ready()
            slab = self._slab_pages * self.stride  # one page of many layers may take more than is kept ready else
            wanted = min(max(_READY_BYTES, slab), self.budget_bytes // 4) - len(self._free) * self.stride
            wanted = min(wanted, self.budget_bytes - self.reserved_bytes)
            slabs = max(0, wanted) // slab
            if not slabs:
                return
            self._warming = threading.Thread(target=self._prepare, args=(slabs,), name="kv-memory", daemon=True)
            self._warming.start()

    def ready(self, timeout: float | None = None) -> None:
        """Waits until the memory that was asked for in the background is there."""
        if self._warming is not None:
            self._warming.join(timeout)

    @property
    def _slab_pages(self) -> int:
        return max(1, min(_SLAB_BYTES, self.budget_bytes) // self.stride)

    def _prepare(self, slabs: int) -> None:
        for _ in range(slabs):
            slab = Slab(self.stride, self.payload_bytes, self._slab_pages)
            slab.populate()
            self._ready.append(slab)

    def _take_ready(self) -> None:
        while self._ready:
            self._add(self._ready.popleft())

    def _grow(self) -> None:
        self._take_ready()
        if not self._free:
            self._add(Slab(self.stride, self.payload_bytes, self._slab_pages))

    def _add(self, slab: Slab) -> None:
        self._slabs.append(slab)
        self._free.extend(reversed(slab.buffers))

    def _trim(self, slab: Slab) -> None:
        """Gives an unused slab back to the system unless it belongs to the reserve."""
        reserve = max(_READY_BYTES // self.stride, 2 * len(slab.buffers))
        if not slab.in_use and len(self._free) > reserve:
            self._slabs.remove(slab)
            self._shed_bytes -= sum(buffer.shed for buffer in slab.buffers)
            self._free = [buffer for buffer in self._free if buffer.slab is not slab]
            slab.let_go()
