"""What is told of records that could not be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.kv.disk import DiskRecord, Notice


def loss_told(records: Sequence[DiskRecord], reason: str) -> tuple[dict[str, Any], Notice]:
    """The fields of the operation log, and the notice to the reader."""
    first, last = min(r.start for r in records), max(r.start + r.tokens for r in records) - 1
    told = {"start": first, "tokens": last + 1 - first, "bytes": sum(r.bytes for r in records), "reason": reason}
    what, again = "A part of a saved conversation could not be used.", "It is computed again from the stored text"
    why = "A checksum or the tokens do not agree." if reason == "damaged" else "Their file is gone."
    return told, Notice(what, f"Tokens {first:,} to {last:,}: {why}", f"{again}; nothing else is lost.")
