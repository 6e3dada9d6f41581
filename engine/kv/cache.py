"""KvCache: all KV state of one model, in memory and (through the disk tier) on disk. Owned by the engine thread."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from engine.collector import collector_at_rest
from engine.kv import adopt
from engine.kv.claims import Claims
from engine.kv.conversations import Conversations, Own
from engine.kv.disk import DiskRecord, DiskTier, Head
from engine.kv.forking import fork_state, save_rest
from engine.kv.hiddens import HiddenCache
from engine.kv.keys import Key, arrays, page_key, root_key
from engine.kv.layout import PageLayout
from engine.kv.log import KvLog
from engine.kv.losses import Losses
from engine.kv.match import Matcher
from engine.kv.notices import Notice
from engine.kv.pool import MappedPage, PageBuffer, PagePool
from engine.kv.prefix import PrefixMatch, leading_nodes, resident
from engine.kv.remapping import WORTH_BYTES, Remapping
from engine.kv.removal import remove_range
from engine.kv.report import CacheStat, StateNumbers, cache_stat, state_numbers
from engine.kv.restore import Restore
from engine.kv.sealing import Sealing
from engine.kv.sequence import Sequence
from engine.kv.shedding import Shedding
from engine.kv.shift import KeyRotation, salts_of
from engine.kv.tree import PageTree
from engine.kv.value import Costs
from engine.kv.writing import WriteBehind
from engine.messages import Shift, Tokens

__all__ = ["KvCache", "Restore"]

_PEEK_TRIES = 5
_PRESSURE_SECONDS = 10.0  # how long an allocation waits for pages that are still being written


class KvCache:
    """Pages by key, conversations by head, sequences for running turns.

    Attributes:
        layout, fingerprint, numerics: of the model; root: parent key of first pages.
        pool, tree, hiddens, claims, sealing, shedding, losses: the parts; disk: the disk tier or None.
        matcher, conversations: what is there, and heads (durable ones included); log: what is done, for people.
    """

    def __init__(
        self, layout: PageLayout, fingerprint: bytes, numerics: str, store: DiskTier | None, ram_budget: int
    ) -> None:
        self.layout = layout
        self.fingerprint = fingerprint
        self.numerics = numerics
        self.root = root_key(fingerprint)
        self.disk = store
        self.pool = PagePool(layout.payload_bytes, ram_budget)
        self.tree = PageTree(self.pool)
        self.hiddens = HiddenCache()
        self.claims = Claims(store)
        self.conversations = Conversations(self.tree, store, self.root)
        self.matcher = Matcher(self.tree, store, self.root, layout, numerics)
        self._writing = WriteBehind(store, layout, self.claims.stored)
        self._abandoned: list[Restore] = []
        self.shedding = Shedding(self.pool, layout)
        self.losses = Losses(self.tree, self.pool, store, self.hiddens)
        self._remapping = Remapping(self.tree, self.pool, store, layout)
        self.log = KvLog(None)
        self.sealing = Sealing(
            self.tree, self.pool, self.claims, self._writing, layout, numerics, self.shedding,
            lambda page: self.log.add("debug", "seal", start=page.start, tokens=len(page.ids), key=page.key.hex()),
        )  # fmt: skip
        self.pool.warm()

    # --- prefixes ---

    @collector_at_rest()  # a long prefix makes thousands of small objects
    def match(
        self, tokens: Tokens, shifts: tuple[Shift, ...] = (), conversation: str | None = None, history: int = 0
    ) -> PrefixMatch:
        """The longest computed prefix, in memory or on disk; it may be all of `tokens`. Reads no KV. `conversation`:
        whose earlier state, of `history` tokens, tells what was edited; None: any."""
        self.poll()
        own = None if conversation is None else Own(self.conversations, conversation, history)
        wanted = *arrays(tokens), salts_of(shifts, self.layout.page_tokens), own
        found = self.matcher.match(*wanted)
        # Less than a page is not worth asking whether another process wrote something meanwhile.
        if len(tokens) - found.memory_tokens >= self.layout.page_tokens and self._refresh():
            found = self.matcher.match(*wanted)
        if found.tokens < len(tokens) or not len(tokens):
            return found
        return replace(found, hidden=self.hiddens.get(found.end_key(self.root)))

    def peek(self, tokens: Tokens, shifts: tuple[Shift, ...] = ()) -> tuple[int, int]:
        """Reusable tokens in memory and on disk, for other threads: reads the maps, changes nothing. The engine thread
        may change the maps meanwhile; the answer is then one of a moment ago."""
        for _ in range(_PEEK_TRIES):
            try:
                found = self.matcher.match(*arrays(tokens), salts_of(shifts, self.layout.page_tokens))
            except RuntimeError:  # a map changed size while it was walked
                continue
            return found.memory_tokens, found.disk_tokens
        return 0, 0

    def sequence(self, match: PrefixMatch) -> Sequence:
        """A sequence from what of the match is in memory; for one that is on disk use `begin_restore`."""
        sequence = Sequence(self)
        pages = leading_nodes(match)
        sequence.hold_path(pages)
        partial = match.partial
        if partial and len(pages) == len(match.pages) and resident(partial.source):
            sequence.hold_tail(partial.source.buffer, *partial.lists())
            sequence.salts = match.tail_salts
            self.tree.touch(partial.source)
        sequence.keep_first(sequence.num_tokens)
        if sequence.num_tokens == len(match.ids):
            sequence.hidden = match.hidden
        return sequence

    def begin_restore(self, match: PrefixMatch, front: int = 0, conversation: str = "") -> Restore:
        """Starts reading, behind `front` pages, for a conversation. KvMemoryFull: they do not fit; nothing changed."""
        if self.disk and match.disk_tokens:
            self.disk.touch((match.partial.source if match.partial else match.pages[-1]).key)
        return Restore(self, match, front, conversation)

    def next_key(self, sequence: Sequence, tokens: Tokens) -> Key | None:
        """Key of the page the sequence computes next on its way through `tokens`; None if they do not fill it."""
        following = adopt.next_page(sequence, tokens)
        return page_key(sequence.chain_key, *following) if following else None

    def adopt(self, sequence: Sequence, tokens: Tokens) -> int:
        """Extends the sequence along `tokens` by pages that became resident meanwhile; returns tokens gained."""
        return adopt.adopt(self.tree, sequence, tokens)

    # --- conversations ---

    def save(self, conversation: str, sequence: Sequence) -> int:
        """Makes the sequence the conversation's state; queues what is not on disk: sealed pages that failed when they
        were sealed, the tail with the head. Returns the bytes queued by this call."""
        self.poll()
        self._refresh()  # what was evicted by another process has to be written again
        if sequence.detached:
            return save_rest(self, conversation, sequence)
        queued = sum(self._writing.write(page, conversation) for page in sequence.pages) + self.anchor(sequence)
        tail = self.sealing.keep_tail(sequence)
        queued += self._writing.write(tail, conversation) if tail else 0
        head = Head(conversation, sequence.last_key, tail.key if tail else None, sequence.num_tokens, time.time())
        self.conversations.set_head(head)
        if self.disk:
            self.disk.touch(sequence.last_key)
        self.tree.touch(*sequence.pages)
        self.tree.remember(sequence.pages)
        sequence.bytes_queued += queued
        kept = False if self.disk and self.disk.refused() else None
        self.log.add(
            "info", "save", conversation=conversation, tokens=sequence.num_tokens, bytes=sequence.bytes_queued,
            on_disk=kept, state_bytes=sequence.num_tokens * self.layout.bytes_per_token,
        )  # fmt: skip
        return queued

    def anchor(self, sequence: Sequence) -> int:
        """Queues what is needed to go on at the sequence's end; returns the bytes."""
        self.shedding.keep(sequence.pages, sequence.num_tokens)
        return self._writing.write_windows(sequence.pages, sequence.num_tokens)

    def fork(self, source: str, target: str, tokens: int | None = None) -> None:
        """Gives `target` the state of `source`, or its first `tokens` tokens; nothing is copied."""
        self._refresh()
        fork_state(self, source, target, tokens)

    def drop(self, conversation: str, disk: bool = False) -> None:
        """Frees the conversation's memory; `disk` also forgets it on disk. What others use stays.

        What is still being written is waited for: it cannot be freed before, and it must not be lost.
        """
        self._remapping.cancel()
        self.flush(_PRESSURE_SECONDS)
        before = self.pool.used_bytes
        self.conversations.free_memory(conversation)
        self.log.add("info", "drop", conversation=conversation, bytes=before - self.pool.used_bytes, disk=disk)
        if disk:
            self.conversations.forget(conversation)

    def report(
        self, conversation: str, tokens: Tokens, shifts: tuple[Shift, ...] = (), history: int = 0
    ) -> StateNumbers:
        """The cache panel's numbers for the conversation's stored history."""
        self._refresh()
        match = self.match(tokens, shifts, conversation, history)
        return state_numbers(match, conversation, self.conversations, self.disk, self.pool.stride)

    def stat(self) -> CacheStat:
        self.poll()
        return cache_stat(self.tree, self.pool, self.disk, self.hiddens, self.pending())

    def close(self) -> None:
        """Ends what is in progress on other threads; the disk tier is closed by who made it."""
        self._remapping.cancel()

    def pending(self) -> int:
        """Bytes queued for writing."""
        return self.disk.pending_bytes() if self.disk else 0

    def flush(self, timeout: float | None = None) -> bool:
        """Blocks until everything queued is durable (or could not be written); False after `timeout` seconds."""
        finished = self.disk.flush(timeout) if self.disk else True
        self.poll()
        return finished

    def notices(self) -> list[Notice]:
        """What the reader should know since the last call."""
        found = self.losses.notices(self.disk.notices() if self.disk else [], settled=not self.shedding.restores)
        for notice in found:
            self.log.add("warn", "notice", what=notice.what, why=notice.why, next=notice.next)
        return found

    def judge_by(self, costs: Costs) -> None:
        """What computing and reading cost on this machine: decides what is evicted, here and on disk."""
        self.tree.costs = costs
        if self.disk:
            self.disk.note_costs(costs)

    def retire(self, idle_seconds: float, keep: Iterable[str] = ()) -> int:
        """Frees the memory of conversations that were not used for so long and are on disk; returns bytes freed.

        What pinned conversations and those in `keep` use stays.
        """
        self.poll()
        stay = [head for name, head in self.conversations.heads().items() if head.pinned or name in set(keep)]
        kept = set[Key]().union(*map(self.conversations.keys, stay))
        before = self.pool.used_bytes
        self.tree.retire(time.monotonic() - idle_seconds, kept)
        if freed := before - self.pool.used_bytes:
            self.log.add("info", "retire", bytes=freed)
        return freed

    def remap(self, worth_bytes: int = WORTH_BYTES) -> int:
        """In idle time: see Remapping. Returns the bytes that moved."""
        if moved := self._remapping.step(worth_bytes):
            self.log.add("info", "remap", bytes=moved)
        return moved

    def evict(self, bytes_wanted: int) -> int:
        """Frees memory nobody uses, worth least first; returns bytes freed."""
        before = self.pool.used_bytes
        self.poll()
        self.tree.make_room(self.pool.room + -(-bytes_wanted // self.pool.stride))
        return before - self.pool.used_bytes

    def remove_range(self, sequence: Sequence, start: int, count: int, rotation: KeyRotation) -> Sequence:
        """A sequence without the tokens [start, start + count); what follows is moved up and approximate. The given one
        is not changed. KvMemoryFull: no room for the moved pages."""
        return remove_range(sequence, self.layout, start, count, rotation)

    # --- used by sequences and restores ---

    def map(self, records: list[DiskRecord]) -> list[npt.NDArray[np.uint8] | None]:
        """See DiskTier.map."""
        return self.disk.map(records) if self.disk and records else [None] * len(records)

    def allocate(self, pages: int) -> list[PageBuffer]:
        """Buffers for `pages` pages, evicting what nobody uses. KvMemoryFull: not possible; nothing was taken."""
        return self.place([None] * pages)

    def place(self, mapped: Iterable[MappedPage | None]) -> list[PageBuffer]:
        """The same; what lies in a mapped file is used where it is, and counts like any other."""
        self.poll()
        mapped = list(mapped)
        pages = len(mapped)
        if self.pool.room < pages:
            self._remapping.cancel()
        if not self.tree.make_room(pages) and self.disk and self.disk.pending_bytes():
            self.flush(_PRESSURE_SECONDS)
            self.tree.make_room(pages)
        if self.pool.room < pages:
            self.pool.refuse(pages)
        return [self.pool.allocate() if page is None else self.pool.adopt(page) for page in mapped]

    def abandon(self, restore: Restore) -> None:
        """A cancelled restore whose buffers are freed once its I/O has ended."""
        self._abandoned.append(restore)
        self.poll()

    def poll(self) -> None:
        """Takes note of finished writes and of the end of cancelled restores."""
        self._writing.poll()
        self.tree.sweep()
        for restore in [restore for restore in self._abandoned if restore.done()]:
            restore.free()
            self._abandoned.remove(restore)

    def _refresh(self) -> bool:
        return self.losses.look_again()
