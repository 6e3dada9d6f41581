"""Why a part of a prompt is computed again although the conversation had its KV once, range by range."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.kv.cache import KvCache
from engine.kv.disk import Gone, Head
from engine.kv.keys import arrays, cut_bytes, key_of, page_key
from engine.kv.notices import Stretch
from engine.kv.shift import salt_key, salts_of
from engine.messages import ComputedRange, QueryState, Role, Submit

Asked = Submit | QueryState


@dataclass(frozen=True)
class Missing:
    """`reason`, `at`: of what had been kept, see messages.ComputedRange. What the conversation had computed behind the
    first `saved` tokens never was kept: `unsaved` says why. None: nothing is known of that.
    """

    reason: str = "not in cache"
    at: float = 0.0
    saved: int | None = None
    unsaved: str = "not saved"
    unsaved_at: float = 0.0


def why_missing(cache: KvCache, asked: Asked, gone: Gone, reused: int) -> Missing:
    """`gone`: why the match, or the restore, ended after `reused` tokens."""
    if reused >= asked.history_tokens or gone.reason == "edited":
        return Missing(gone.reason, gone.at)
    head = cache.conversations.heads().get(asked.conversation)
    lost = gone.reason == "not in cache"
    if lost and (kept := cache.disk.kept_elsewhere(asked.conversation, reused) if cache.disk else ""):
        return Missing(kept)
    if lost and head and not asked.shifts and _moved(cache, head):
        return Missing("moved state undone")
    refused = cache.disk.refusal(asked.conversation) if cache.disk else None
    if lost and refused and not head:
        return Missing(refused.reason, refused.at)
    unsaved = refused or Gone("stopped" if asked.last_turn.how == "stopped" else "not saved", 0.0)
    if head and not _on_the_way(cache, asked, head):
        return Missing("edited" if lost else gone.reason, gone.at)
    if head:
        return Missing(gone.reason, gone.at, head.tokens, unsaved.reason, unsaved.at)
    return Missing(gone.reason, gone.at, _had_before(asked) if lost else None, unsaved.reason, unsaved.at)


def _had_before(asked: Asked) -> int | None:
    """Behind so many tokens nothing may ever have been kept. None: the last turn ended, or was stopped after its answer
    had begun, so that all of it was to be saved."""
    last = asked.last_turn
    answer = Role.GENERATED in asked.tokens.roles[last.began : asked.history_tokens]
    return None if last.how == "ended" or (last.how == "stopped" and answer) else last.began


def computed_ranges(asked: Asked, gaps: Iterable[Stretch], missing: Missing) -> tuple[ComputedRange, ...]:
    """Splits what has to be computed, the ascending `gaps` between what is there, into ranges with a reason each.

    Below `history_tokens` the conversation had its KV once, so `missing` says what became of it. The first
    token above is the last one sampled in the turn before: it was never fed to the model. The rest is new.
    """
    total, history, gaps = len(asked.tokens), asked.history_tokens, list(gaps)
    had = min(history, total)
    kept = had if missing.saved is None else min(missing.saved, had)
    sampled = 0 < history < total and asked.tokens.roles[history] == Role.GENERATED
    ranges = (
        ComputedRange(_within(gaps, 0, kept), missing.reason, missing.at),
        ComputedRange(_within(gaps, kept, had), missing.unsaved, missing.unsaved_at),
        ComputedRange(_within(gaps, had, had + sampled), "last sampled"),
        ComputedRange(_within(gaps, had + sampled, total), "new"),
    )
    return tuple(entry for entry in ranges if entry.tokens > 0)


def _within(gaps: Iterable[Stretch], start: int, stop: int) -> int:
    """Tokens of the gaps that lie there."""
    return sum(max(0, min(stop, end) - max(start, first)) for first, end in gaps)


def _on_the_way(cache: KvCache, asked: Asked, head: Head) -> bool:
    """Whether what the conversation kept is a beginning of what is asked. Of a head that eviction has shortened the
    last page that is left tells."""
    size, salts = cache.layout.page_tokens, salts_of(asked.shifts, cache.layout.page_tokens)
    ids, roles = arrays(asked.tokens)
    pages, keys = head.tokens // size, [cache.root]
    for number, data in enumerate(cut_bytes(ids[: head.tokens], roles[: head.tokens], size)):
        keys.append(key_of(salt_key(keys[-1], salts.get(number, ())), data))
    if head.tail is None or len(ids) < head.tokens:
        return head.last in keys and len(ids) >= head.tokens
    chain, rest = salt_key(keys[-1], salts.get(pages, ())), slice(pages * size, head.tokens)
    return keys[-1] == head.last and page_key(chain, ids[rest], roles[rest]) == head.tail


def _moved(cache: KvCache, head: Head) -> bool:
    """Whether the conversation's end was kept after a removal that moved it."""
    for key in filter(None, (head.tail, head.last)):
        node = cache.tree.get(key)
        if node is not None:
            return node.approximate
        if cache.disk and cache.disk.find(key):
            return cache.disk.moved(key)
    return False
