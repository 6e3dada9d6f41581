"""Numbers for the cache panel and the statistics."""

from __future__ import annotations

from dataclasses import dataclass

from engine.kv.conversations import Conversations
from engine.kv.disk import DiskRecord, DiskTier
from engine.kv.hiddens import HiddenCache
from engine.kv.keys import Key
from engine.kv.pool import PagePool
from engine.kv.prefix import PrefixMatch, Source
from engine.kv.tree import Node, PageTree
from engine.messages import FirstDifference, PageBits, StateTier


@dataclass(frozen=True)
class StateNumbers:
    """The part of messages.StateReport that the cache knows; fields as there.

    `bytes_shared` counts a page once, as `pagekeep cache` does: on disk, in memory where it is not there.
    `missing_reason`, `missing_at`: why the reusable prefix ends and since when, "" if it is all.
    `tokens_foreign`: of it computed under another numerics label.
    """

    tokens: int
    tokens_memory: int
    tokens_disk_only: int
    tokens_unsaved: int
    bytes_memory: int
    bytes_disk: int
    bytes_shared: int
    shared_with: tuple[str, ...]
    last_saved: float | None
    tier: StateTier
    missing_reason: str
    missing_at: float
    tokens_foreign: int
    difference: FirstDifference | None
    pages: bytes
    pinned: bool


@dataclass(frozen=True)
class CacheStat:
    """The account of memory, in bytes.

    Attributes:
        used_bytes: held by pages and tails (never above budget_bytes), `mapped_bytes` of it straight from segment files
            (the system's file cache); reserved_bytes: anonymous, taken from the system, free
            buffers included; evictable_bytes: could be freed now; unsaved_bytes: not on disk; pending_bytes: queued
            for writing; index_bytes: maps of the disk index; hidden_bytes: kept final hidden vectors.
    """

    pages: int
    tails: int
    used_bytes: int
    reserved_bytes: int
    budget_bytes: int
    evictable_bytes: int
    unsaved_bytes: int
    pending_bytes: int
    index_bytes: int
    hidden_bytes: int
    mapped_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """All anonymous memory of the KV state."""
        return self.reserved_bytes + self.index_bytes + self.hidden_bytes


def state_numbers(
    match: PrefixMatch,
    conversation: str,
    conversations: Conversations,
    disk: DiskTier | None,
    page_bytes: int,
) -> StateNumbers:
    """Numbers for a conversation whose stored history gave `match`."""
    sources = [*match.pages, *([match.partial.source] if match.partial else [])]
    counts = [match.page_tokens] * len(match.pages) + ([match.partial.tokens] if match.partial else [])
    nodes = [source for source in sources if isinstance(source, Node)]
    kept = [_record(source, disk) for source in sources]
    users = conversations.users({source.key for source in sources}, conversation)
    shared = set().union(*users.values())
    return StateNumbers(
        tokens=len(match.ids),
        tokens_memory=match.memory_tokens,
        tokens_disk_only=match.disk_tokens,
        tokens_unsaved=sum(
            n for source, n in zip(sources, counts, strict=True) if isinstance(source, Node) and not source.saved
        ),
        bytes_memory=sum(page_bytes - buffer.shed for buffer in {id(n.buffer): n.buffer for n in nodes}.values()),
        bytes_disk=sum(record.bytes for record in kept if record),
        bytes_shared=sum(
            record.bytes if record else page_bytes
            for source, record in zip(sources, kept, strict=True)
            if source.key in shared
        ),
        shared_with=tuple(sorted(users)),
        last_saved=conversations.last_saved(conversation),
        tier=_tier(match),
        missing_reason=match.missing_reason,
        missing_at=match.missing_at,
        tokens_foreign=match.foreign_tokens,
        difference=match.difference,
        pages=_page_map(match, shared, disk),
        pinned=conversations.is_pinned(conversation),
    )


def _page_map(match: PrefixMatch, shared: set[Key], disk: DiskTier | None) -> bytes:
    """messages.PageBits by page, for the whole token list."""
    moved = min(match.salts, default=len(match.ids))  # the first page that stands where it was not computed
    known = [_bits(source, match.numerics, shared, disk) for source in match.pages]
    if match.partial:
        known.append(_bits(match.partial.source, match.numerics, shared, disk) | PageBits.TAIL)
    marked = [bits | (PageBits.SHIFTED if place >= moved else 0) for place, bits in enumerate(known)]
    return bytes(marked).ljust(-(-len(match.ids) // match.page_tokens), b"\0")


def _bits(source: Source, numerics: str, shared: set[Key], disk: DiskTier | None) -> int:
    bits = PageBits.MEMORY if isinstance(source, Node) else PageBits(0)
    if _record(source, disk) is not None:
        bits |= PageBits.DISK
    if source.key in shared:
        bits |= PageBits.SHARED
    if source.numerics != numerics:
        bits |= PageBits.FOREIGN
    return bits


def cache_stat(
    tree: PageTree, pool: PagePool, disk: DiskTier | None, hiddens: HiddenCache, pending_bytes: int
) -> CacheStat:
    nodes = list(tree)
    return CacheStat(
        pages=sum(node.sealed for node in nodes),
        tails=sum(not node.sealed for node in nodes),
        used_bytes=pool.used_bytes,
        reserved_bytes=pool.reserved_bytes,
        budget_bytes=pool.budget_bytes,
        evictable_bytes=sum(pool.stride - n.buffer.shed for n in nodes if not n.refs and n.buffer.refs == 1),
        unsaved_bytes=sum(pool.stride - node.buffer.shed for node in nodes if not node.saved),
        pending_bytes=pending_bytes,
        index_bytes=disk.index_bytes() if disk else 0,
        hidden_bytes=hiddens.bytes,
        mapped_bytes=pool.mapped_bytes,
    )


def _record(source: Source, disk: DiskTier | None) -> DiskRecord | None:
    if isinstance(source, DiskRecord):
        return source
    return disk.find(source.key) if disk and source.saved else None


def _tier(match: PrefixMatch) -> StateTier:
    if not match.tokens:
        return "none"
    return "disk" if match.disk_tokens else "memory"
