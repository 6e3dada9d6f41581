"""Page buffers: aligned, apart, reused, within the budget."""

from __future__ import annotations

import gc
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from engine.kv.pool import KvMemoryFull, PagePool


def test_buffers_are_aligned_and_apart() -> None:
    pool = PagePool(5000, 40 * 8192)
    buffers = [pool.allocate() for _ in range(40)]
    starts = sorted(buffer.address for buffer in buffers)
    assert all(start % 4096 == 0 for start in starts)
    assert all(b - a >= 8192 for a, b in pairwise(starts))
    for number, buffer in enumerate(buffers):
        buffer.view[:] = number
    assert all((buffer.view == number).all() for number, buffer in enumerate(buffers))


def test_the_budget_holds_and_buffers_come_back() -> None:
    pool = PagePool(4096, 3 * 4096)
    buffers = [pool.allocate() for _ in range(3)]
    with pytest.raises(KvMemoryFull, match="used up"):
        pool.allocate()
    pool.retain(buffers[0])
    pool.release(buffers[0])
    assert pool.room == 0, "it has another holder"
    address = buffers[0].address
    pool.release(buffers[0])
    assert pool.used_bytes == 2 * 4096
    assert pool.allocate().address == address
    assert pool.reserved_bytes <= pool.budget_bytes


def test_memory_got_ready_in_the_background_is_used() -> None:
    pool = PagePool(4096, 1 << 20)
    pool.warm()
    pool.ready(10)
    buffers = [pool.allocate() for _ in range(256)]
    assert len({buffer.address for buffer in buffers}) == 256
    assert pool.reserved_bytes <= pool.budget_bytes
    with pytest.raises(KvMemoryFull):
        pool.allocate()


def test_a_buffer_is_not_released_twice() -> None:
    pool = PagePool(4096, 1 << 20)
    buffer = pool.allocate()
    pool.release(buffer)
    with pytest.raises(AssertionError):
        pool.release(buffer)


def test_pages_larger_than_what_is_kept_ready_are_got_ready_too() -> None:
    """More than 32 layers of 4 KB a token, 64 tokens."""
    pool = PagePool(9 << 20, 90 << 20)
    pool.warm()
    for _ in range(2):
        pool.ready(30)
        (ready,) = pool._ready
        assert pool.allocate() is ready.buffers[0]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_that_is_not_needed_any_more_goes_back_to_the_system_at_once() -> None:
    def anonymous() -> int:
        """Bytes in memory or swapped out."""
        told = Path("/proc/self/status").read_text()
        return sum(int(size) << 10 for size in re.findall(r"^(?:RssAnon|VmSwap):\s+(\d+)", told, re.MULTILINE))

    pool = PagePool(1 << 20, 256 << 20)
    buffers = [pool.allocate() for _ in range(200)]
    for buffer in buffers:
        buffer.view[:] = 1
    full = anonymous()
    gc.disable()
    try:
        for buffer in buffers:
            pool.release(buffer)
        assert pool.reserved_bytes <= 16 << 20
        assert full - anonymous() > 170 << 20
    finally:
        gc.enable()
