"""The memory account of all conversations, and what the checks found: from the engine's statistics. No widgets."""

from __future__ import annotations

from app.core.memory_account import MemoryAccount
from app.widgets.bars import Part
from app.widgets.format import plural
from engine.messages import EngineStats
from rag.sizes import size_text


def memory_parts(stats: EngineStats) -> list[Part]:
    """Anonymous and mapped memory by what it holds."""
    held = MemoryAccount.of(stats)
    kinds = (
        ("weights", held.weights, "bar_queue"),
        ("state", held.state, "bar_restore"),
        ("state in files", held.state_in_files, "bar_prefill"),
        ("free buffers", held.free_buffers, "bar_save"),
        ("index", held.index, "bar_retrieve"),
        ("program", held.program, "bar_decode"),
    )
    return [Part(name, size, size_text(size), color) for name, size, color in kinds]


def account_lines(stats: EngineStats) -> list[tuple[str, str]]:
    budget = stats.disk_budget_bytes
    disk = f"{size_text(stats.kv_disk_bytes)} of {size_text(budget)}" if budget else "no store"
    memory = f"{size_text(stats.kv_memory_bytes)} of {size_text(stats.ram_budget_bytes)}"
    total = sum(part.value for part in memory_parts(stats))
    return [
        ("Memory in all", f"{size_text(int(total))}: the sum of the bar"),
        ("State in memory", f"{memory}{_mapped(stats)}"),
        ("The budget is", "for state alone; weights, free buffers, the index and the program come on top"),
        ("State on disk", disk),
        ("Written", f"{size_text(stats.written_bytes)} since the model was loaded"),
        ("Checks", check_words(stats)),
    ]


def _mapped(stats: EngineStats) -> str:
    return f", {size_text(stats.kv_mapped_bytes)} of it straight from files" if stats.kv_mapped_bytes else ""


def check_words(stats: EngineStats) -> str:
    """What the canary found: pages from disk that were computed again in idle time."""
    if not stats.pages_checked:
        return "no page was computed again yet"
    found = "all equal" if not stats.pages_wrong else f"{plural(stats.pages_wrong, 'page')} wrong and dropped"
    return f"{plural(stats.pages_checked, 'page')} computed again, {found}"
