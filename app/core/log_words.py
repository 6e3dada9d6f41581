"""The operation log of the KV state in words."""

from __future__ import annotations

import time
from typing import Any

_APART = frozenset({"at", "operation", "conversation", "process", "level", "source"})


def log_words(entry: dict[str, Any]) -> str:
    """`reuse  18,246 tokens, memory 0, disk 18,204, 84.1 MB read, 38.2 ms`; who and when are left out."""
    if entry["operation"] == "notice":  # sentences
        return f"notice    {' '.join(str(entry[key]) for key in ('what', 'why', 'next') if entry.get(key))}"
    rest = [_pair(key, value) for key, value in entry.items() if key not in _APART and value != ""]
    return f"{entry['operation']:<9} {', '.join(rest)}".rstrip()


def log_time(entry: dict[str, Any], seconds: bool = True) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%H:%M:%S", time.localtime(entry["at"]))


def _pair(key: str, value: object) -> str:
    name = key.replace("_", " ")
    if key in ("bytes", "bytes_read") and isinstance(value, int | float):
        return f"{value / 1e6:,.1f} MB{' read' if key == 'bytes_read' else ''}"
    if key == "milliseconds" and isinstance(value, int | float):
        return f"{value:,.1f} ms"
    if key == "tokens" and isinstance(value, int):
        return f"{value:,} tokens"
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
