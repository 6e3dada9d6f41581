"""What is told of records that could not be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.kv.disk import DiskRecord, Notice

_WHAT, _GONE = "A part of a saved conversation could not be used.", "Their file is gone."
_NEXT = "It is computed again from the stored text; nothing else is lost."


def files_gone(tokens: int) -> Notice:
    """Of files that were gone when the store was opened."""
    return Notice(_WHAT, f"{tokens:,} {'token' if tokens == 1 else 'tokens'}: {_GONE}", _NEXT)


def loss_told(records: Sequence[DiskRecord], reason: str) -> tuple[dict[str, Any], Notice]:
    """The fields of the operation log, and the notice to the reader."""
    first, last = min(r.start for r in records), max(r.start + r.tokens for r in records) - 1
    told = {"start": first, "tokens": last + 1 - first, "bytes": sum(r.bytes for r in records), "reason": reason}
    why = "A checksum or the tokens do not agree." if reason == "damaged" else _GONE
    return told, Notice(_WHAT, f"Tokens {first:,} to {last:,}: {why}", _NEXT)
