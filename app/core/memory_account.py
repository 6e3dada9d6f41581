"""What a loaded model holds in memory, by kind: the same sums in the window and in `ask --json`."""

from __future__ import annotations

from dataclasses import dataclass

from engine.messages import EngineStats


@dataclass(frozen=True)
class MemoryAccount:
    """Bytes. `state`: KV pages in own memory; `state_in_files`: those used straight from mapped files, which the
    system's file cache holds; `free_buffers`: taken from the system for state and not in use; `index`: of the store;
    `program`: what else of the process's memory is no file's (interpreter, tokenizer, compute buffers, the window)."""

    weights: int
    state: int
    state_in_files: int
    free_buffers: int
    index: int
    program: int = 0

    @classmethod
    def of(cls, stats: EngineStats) -> MemoryAccount:
        own = stats.kv_memory_bytes - stats.kv_mapped_bytes
        free = max(0, stats.kv_reserved_bytes - own)
        program = max(0, stats.anonymous_bytes - own - free - stats.index_bytes)
        return cls(stats.weights_bytes, own, stats.kv_mapped_bytes, free, stats.index_bytes, program)
