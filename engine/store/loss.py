"""What is told of records that could not be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.kv.disk import DiskRecord
from engine.kv.notices import Notice, joined

_WHAT, _GONE = "A part of a saved conversation could not be used.", "Their file is gone."
_NEXT = "It is computed again from the stored text; nothing else is lost."


def files_gone(tokens: int) -> Notice:
    """Of files that were gone when the store was opened."""
    return Notice(_WHAT, f"{tokens:,} {'token' if tokens == 1 else 'tokens'}: {_GONE}", _NEXT)


def loss_told(records: Sequence[DiskRecord], reason: str) -> tuple[dict[str, Any], Notice]:
    """The fields of the operation log, and the notice to the reader."""
    lost = joined(record.stretch for record in records)
    told: dict[str, Any] = {"start": lost[0][0], "tokens": sum(stop - start for start, stop in lost), "reason": reason}
    why = "A checksum or the tokens do not agree." if reason == "damaged" else _GONE
    told["bytes"] = sum(record.bytes for record in records)
    return told, Notice(_WHAT, why, _NEXT, tuple(record.stretch for record in records))
