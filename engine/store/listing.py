"""All that is kept, conversation by conversation: for `pagekeep cache ls`."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from engine.kv.layout import kv_types_in
from engine.store.inspect import Link, is_moved, links, without_gap

Row = tuple[int, str, bytes, bytes | None, int, float, int, bytes, str, str]
_HEADS = (
    "SELECT heads.model, conversation, last, tail, tokens, saved, pinned, fingerprint, name, layout FROM heads "
    "JOIN models ON models.id = heads.model ORDER BY saved DESC"
)


@dataclass(frozen=True)
class ConversationEntry:
    """One conversation of one model: `bytes` on disk, of which `shared_bytes` are used by others too; `saved` unix
    time.

    `tokens_saved`: how many of its `tokens` are on disk without a gap. `kv_type`: `f16`, or `q8/q4` for K and V; "" of
    an import that was not used here yet. `approximate`: its end was moved after a removal, or follows what was.
    """

    conversation: str
    model: str
    fingerprint: str
    tokens: int
    tokens_saved: int
    bytes: int
    shared_bytes: int
    saved: float
    pinned: bool
    kv_type: str
    approximate: bool


def conversations(db: sqlite3.Connection, segments: Path) -> list[ConversationEntry]:
    """Last saved first."""
    heads: list[Row] = db.execute(_HEADS).fetchall()
    chains = [links(db, row[0], row[2], row[3]) for row in heads]
    users: dict[tuple[int, bytes], int] = {}
    for row, chain in zip(heads, chains, strict=True):
        for key in chain:
            users[row[0], key] = users.get((row[0], key), 0) + 1
    return [
        _entry(row, chain, users, is_moved(db, segments, row[0], row[3] or row[2]))
        for row, chain in zip(heads, chains, strict=True)
    ]


def _entry(head: Row, chain: dict[bytes, Link], users: dict[tuple[int, bytes], int], moved: bool) -> ConversationEntry:
    model, conversation, _, _, tokens, saved, pinned, fingerprint, name, layout = head
    position = without_gap((link.start, link.tokens) for link in chain.values())
    shared = sum(link.bytes for key, link in chain.items() if users[model, key] > 1)
    total = sum(link.bytes for link in chain.values())
    return ConversationEntry(
        conversation, name, fingerprint.hex(), tokens, position, total, shared, saved, bool(pinned),
        kv_types_in(layout), moved,
    )  # fmt: skip
