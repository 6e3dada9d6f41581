"""What a loaded model holds in memory, by kind."""

from __future__ import annotations

from dataclasses import replace

from app.core.memory_account import MemoryAccount
from engine.messages import EngineStats


def test_mapped_pages_are_no_memory_of_ours_and_free_buffers_are() -> None:
    stats = EngineStats(1000, 300, 0, 0, 0, 0.0, 0.0, kv_reserved_bytes=250, kv_mapped_bytes=100, index_bytes=7)
    assert MemoryAccount.of(stats) == MemoryAccount(1000, 200, 100, 50, 7)
    counted = MemoryAccount.of(replace(stats, anonymous_bytes=400))
    assert (counted.program, counted.state + counted.free_buffers + counted.index + counted.program) == (143, 400)
    assert MemoryAccount.of(EngineStats(1000, 300, 0, 0, 0, 0.0, 0.0)).free_buffers == 0
