"""The operation log of the KV state in words."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from app.core.explain import reason_words
from app.core.spans import ComputedSpan
from rag.sizes import plural, size_text

_APART = frozenset({"at", "operation", "conversation", "process", "level", "source"})
_REUSE = frozenset({"tokens", "memory", "disk", "reason", "cut", "position", "expected", "found"})
_SAVE = frozenset({"tokens", "bytes", "state_bytes", "on_disk"})


def log_words(entry: dict[str, Any]) -> str:
    """`reuse     1,100 of 1,200 tokens (0 memory, 1,100 disk), 84.1 MB read, 38.2 ms, the rest is new`; who and when
    are left out."""
    return (
        f"{entry['operation'].replace('_', ' '):<9} {', '.join(_WORDS.get(entry['operation'], _pairs)(entry))}".rstrip()
    )


def log_time(entry: dict[str, Any], seconds: bool = True) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S" if seconds else "%H:%M:%S", time.localtime(entry["at"]))


def _notice(entry: dict[str, Any]) -> list[str]:
    return [" ".join(str(entry[key]) for key in ("what", "why", "next") if entry.get(key))]


def _reuse(entry: dict[str, Any]) -> list[str]:
    """`tokens`: of the whole prompt."""
    memory, disk = entry.get("memory", 0), entry.get("disk", 0)
    found = f"{memory + disk:,} of {entry.get('tokens', 0):,} tokens ({memory:,} memory, {disk:,} disk)"
    return [found, *_pairs(entry, _REUSE), *([_rest(entry)] if entry.get("reason") else [])]


def _rest(entry: dict[str, Any]) -> str:
    """`cut`: tokens that this conversation had computed and cannot use; `position`: where others were kept."""
    reason = str(entry["reason"])
    if reason == "new":
        return "the rest is new"
    if reason == "last sampled":
        return "then the token sampled last"
    computed = entry.get("tokens", 0) - entry.get("memory", 0) - entry.get("disk", 0)
    lost = f"{plural(min(entry['cut'], computed), 'token')} read again" if entry.get("cut") else "the rest"
    first = f", from token {entry['position']:,} on" if "position" in entry else ""
    return f"{lost}: {reason_words(ComputedSpan(0, 0, reason, 0.0))}{first}"


def _save(entry: dict[str, Any]) -> list[str]:
    """`bytes`: all that was written for it since the conversation was saved before, page by page and its end."""
    size = [f"{size_text(entry['state_bytes'])} in memory"] if "state_bytes" in entry else []
    new = f"{size_text(entry.get('bytes', 0))} new on disk"
    kept = entry.get("on_disk", True)
    return [plural(entry.get("tokens", 0), "token"), *size, new if kept else "not on disk", *_pairs(entry, _SAVE)]


def _pairs(entry: dict[str, Any], apart: frozenset[str] = frozenset()) -> list[str]:
    return [_pair(key, value) for key, value in entry.items() if key not in _APART | apart and value != ""]


def _pair(key: str, value: object) -> str:
    name = key.replace("_", " ")
    if key in ("bytes", "bytes_read") and isinstance(value, int | float):
        return f"{size_text(value)}{' read' if key == 'bytes_read' else ''}"
    if key == "milliseconds" and isinstance(value, int | float):
        return f"{value:,.1f} ms"
    if key in ("tokens", "messages") and isinstance(value, int):
        return plural(value, key[:-1])
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"


_WORDS: dict[str, Callable[[dict[str, Any]], list[str]]] = {"notice": _notice, "reuse": _reuse, "save": _save}
