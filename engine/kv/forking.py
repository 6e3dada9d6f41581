"""A copy of a conversation's beginning: its state without what comes after."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.kv.disk import Head
from engine.kv.keys import Key
from engine.kv.sequence import Sequence
from engine.kv.tree import Node

if TYPE_CHECKING:
    from engine.kv.cache import KvCache


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
    memory; of what is on disk only, whole pages are taken, and the next question finds the rest."""
    key, start = _page_of(cache, head, tokens)
    node = cache.tree.get(key)
    if node is not None:
        sequence = _up_to(cache, node)
        sequence.keep_first(min(tokens, sequence.num_tokens))
        cache.save(target, sequence)
        sequence.release()
    elif start:
        before = cache.conversations.parent(key)
        short = replace(head, last=before, tail=None, tokens=start) if before else head
        cache.conversations.set_head(short.renamed(target))


def _page_of(cache: KvCache, head: Head, tokens: int) -> tuple[Key, int]:
    """The page, or tail, that holds the last of the tokens, and where it begins; how far it is known."""
    key = head.tail or head.last
    start = _start(cache, key)
    while start >= tokens and (before := cache.conversations.parent(key)) not in (None, cache.root):
        key, start = before, _start(cache, before)
    return key, start


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
