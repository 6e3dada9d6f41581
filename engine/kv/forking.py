"""A copy of a conversation's beginning: its state without what comes after."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from engine.kv.disk import DiskRecord, DiskTier, Head, ReadRequest, WriteRequest
from engine.kv.keys import Ids, Key, Roles, page_key
from engine.kv.sequence import Sequence
from engine.kv.tree import Node
from engine.kv.windows import looked_back_on

if TYPE_CHECKING:
    from engine.kv.cache import KvCache

Stored = tuple[Ids, Roles]  # the tokens of a record
_READ_SECONDS = 2.0  # of one page; the engine waits for it


def fork_state(cache: KvCache, source: str, target: str, tokens: int | None) -> None:
    """Gives `target` the state of `source`, or its first `tokens` tokens. Nothing happens where there is none."""
    started, head = time.perf_counter(), cache.conversations.head(source)
    if head is None:
        return
    if tokens is not None and tokens < head.tokens:
        _fork_within(cache, head, target, tokens)
    else:
        cache.conversations.set_head(head.renamed(target))
    kept, spent = cache.conversations.head(target), (time.perf_counter() - started) * 1e3
    cache.log.add(
        "debug", "fork", conversation=target, source=source, tokens=kept.tokens if kept else 0, milliseconds=spent
    )


def _fork_within(cache: KvCache, head: Head, target: str, tokens: int) -> None:
    """Gives `target` the first `tokens` tokens of a state. The page in which they end is shared too where it is in
    memory; of one that is on disk only its beginning is written once more, as the target's tail."""
    key, start = _page_of(cache, head, tokens)
    node = cache.tree.get(key)
    if node is not None:
        sequence = _up_to(cache, node)
        sequence.keep_first(min(tokens, sequence.num_tokens))
        cache.save(target, sequence)
        sequence.release()
        return
    before = _before(cache, head, key, start)  # known until the page is found damaged
    if short := _short_on_disk(cache, head, key, tokens) or before:
        cache.conversations.set_head(short.renamed(target))


def _before(cache: KvCache, head: Head, key: Key, start: int) -> Head | None:
    """What stands before a page, None where that is nothing, or not known."""
    before = cache.conversations.parent(key) if start else None
    return replace(head, last=before, tail=None, tokens=start) if before else None


def _page_of(cache: KvCache, head: Head, tokens: int) -> tuple[Key, int]:
    """The page, or tail, that holds the last of the tokens, and where it begins; how far it is known."""
    key = head.tail or head.last
    start = _start(cache, key)
    while start >= tokens and (before := cache.conversations.parent(key)) not in (None, cache.root):
        key, start = before, _start(cache, before)
    return key, start


def _short_on_disk(cache: KvCache, head: Head, key: Key, tokens: int) -> Head | None:
    """The head of the first `tokens` tokens, which end in that page or tail. None where they cannot be kept: it is not
    on disk in all layers, not intact, moved (its key tells of what was removed), or its disk takes too long."""
    record = cache.disk.find(key) if cache.disk else None
    if cache.disk is None or record is None or tokens <= record.start or not _continued(cache, record, tokens):
        return None
    if not record.tail and tokens == record.stretch[1]:
        return replace(head, last=key, tail=None, tokens=tokens)
    if (stored := cache.disk.tokens_of(record)) is None or page_key(record.parent, *stored) != key:
        return None
    tail = _first_rows(cache, cache.disk, record, stored, tokens - record.start)
    return None if tail is None else Head(head.conversation, record.parent, tail, tokens, time.time())


def _continued(cache: KvCache, record: DiskRecord, tokens: int) -> bool:
    """Whether all layers are on disk that whoever goes on there looks back on."""
    size, key, whole = cache.layout.page_tokens, record.parent, record.whole
    for _ in range(looked_back_on(tokens, cache.layout.lookback, size).start, record.start // size):
        before = cache.disk.find(key) if whole and cache.disk else None
        whole, key = before is not None and before.whole, before.parent if before else key
    return whole


def _first_rows(cache: KvCache, disk: DiskTier, record: DiskRecord, stored: Stored, count: int) -> Key | None:
    """Queues the first tokens of a record as a tail, if it is not there; its key, None where that cannot be."""
    ids, roles = stored[0][:count], stored[1][:count]
    key = page_key(record.parent, ids, roles)
    if disk.find(key):
        return key
    payload = np.zeros(cache.layout.payload_bytes, np.uint8)
    reading = disk.read([ReadRequest(record, *stored, payload)])
    if not reading.wait(_READ_SECONDS):
        reading.cancel()
        return None
    tail = WriteRequest(key, record.parent, True, record.start, ids, roles, payload, record.numerics)
    return key if not reading.outcome(0) and disk.write(tail, lambda durable: None) else None


def _start(cache: KvCache, key: Key) -> int:
    node = cache.tree.get(key)
    if node is not None:
        return node.start
    record = cache.disk.find(key) if cache.disk else None
    return record.start if record else 0


def _up_to(cache: KvCache, node: Node) -> Sequence:
    sequence, path = Sequence(cache), node.path()
    sequence.hold_path([page for page in path if page.sealed])
    if not node.sealed:
        sequence.hold_tail(node.buffer, node.ids.tolist(), node.roles.tolist())
        sequence.salts = node.salts
    return sequence


def save_rest(cache: KvCache, conversation: str, sequence: Sequence) -> int:
    """Of a sequence with detached pages, what stands before them becomes the conversation's state; see KvCache.save."""
    rest = Sequence(cache)
    try:
        rest.hold_path([page for page in sequence.pages if page.resident])
        return cache.save(conversation, rest)
    finally:
        rest.release()
