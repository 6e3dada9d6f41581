"""Restore: brings a prefix back from disk as a transaction: verified pages, then one swap into the page tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskRecord, ReadRequest, ReadTicket
from engine.kv.keys import Ids, Roles
from engine.kv.match import PartialSource, PrefixMatch, Source
from engine.kv.pool import PageBuffer
from engine.kv.sequence import Sequence
from engine.kv.tree import Node

if TYPE_CHECKING:
    from engine.kv.cache import KvCache


class Restore:
    """Reads on an I/O thread; everything else on the engine thread.

    Call `take()` once `done()`, or `cancel()` at any time; exactly one of them. `failed`: why the sequence
    came out
    shorter than the match, "" if it did not.
    """

    def __init__(self, cache: KvCache, match: PrefixMatch) -> None:
        self._cache = cache
        self._match = match
        self.failed = ""
        sources = [*match.pages, *([match.partial.source] if match.partial else [])]
        on_disk = [source for source in sources if isinstance(source, DiskRecord)]
        on_disk += [record for _, record in match.unfinished]
        self._held = [source for source in sources if isinstance(source, Node) and source.resident]
        self._held += [node for node, _ in match.unfinished]
        for node in self._held:
            node.refs += 1
        try:
            self._mapped = dict(zip(map(id, on_disk), cache.map(on_disk), strict=True))
            views = [_payload(record, self._mapped[id(record)]) for record in on_disk]
            self._buffers = dict(zip(map(id, on_disk), cache.place(views), strict=True))
        except Exception:
            self._unhold()
            raise
        self._order = {id(record): index for index, record in enumerate(on_disk)}
        self._ticket = self._start(sources)

    @property
    def bytes_read(self) -> int:
        return self._ticket.bytes_read if self._ticket else 0

    def done(self) -> bool:
        return self._ticket is None or self._ticket.done()

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks until done; for callers that have no engine loop."""
        return self._ticket is None or self._ticket.wait(timeout)

    def cancel(self) -> None:
        """Gives up; memory is freed once the I/O thread is through with it."""
        if self._ticket is not None:
            self._ticket.cancel()
        self._unhold()
        self._cache.abandon(self)

    def take(self) -> Sequence:
        """The restored sequence. Damaged or lost pages end it early; they count as absent from now on."""
        assert self.done(), "the restore is still reading"
        sequence = Sequence(self._cache)
        pages: list[Node] = []
        for source, (ids, roles) in zip(self._match.pages, self._page_tokens(), strict=True):
            node = self._settle(source, pages[-1] if pages else None, ids, roles)
            if node is None:
                break
            pages.append(node)
        sequence._hold_pages(pages)
        if len(pages) == len(self._match.pages) and self._match.partial:
            self._continue(sequence, self._match.partial, pages[-1] if pages else None)
        self._finish(sequence)
        if not self.failed and sequence.num_tokens == len(self._match.ids):
            sequence.hidden = self._cache.hiddens.get(sequence.tail_key())
        sequence.bytes_read = self.bytes_read
        self.free()
        self._unhold()
        return sequence

    def free(self) -> None:
        """Releases buffers that were not swapped in."""
        for buffer in self._buffers.values():
            self._cache.pool.release(buffer)
        self._buffers, self._mapped = {}, {}

    def _page_tokens(self) -> list[tuple[Ids, Roles]]:
        size, match = self._match.page_tokens, self._match
        cuts = [slice(i * size, (i + 1) * size) for i in range(len(match.pages))]
        return [(match.ids[cut], match.roles[cut]) for cut in cuts]

    def _start(self, sources: list[Source]) -> ReadTicket | None:
        tokens = self._page_tokens()
        if self._match.partial:
            tokens.append((self._match.partial.ids, self._match.partial.roles))
        wanted = [(s, *pair) for s, pair in zip(sources, tokens, strict=True) if isinstance(s, DiskRecord)]
        wanted += [(record, node.ids, node.roles) for node, record in self._match.unfinished]
        requests = [
            ReadRequest(record, ids, roles, self._buffers[id(record)].view, self._mapped[id(record)])
            for record, ids, roles in wanted
        ]
        return self._cache.disk.read(requests) if requests and self._cache.disk else None

    def _continue(self, sequence: Sequence, partial: PartialSource, parent: Node | None) -> None:
        node = self._settle(partial.source, parent, partial.ids, partial.roles)
        if node is not None:
            sequence._hold_tail(node.buffer, *partial.lists())
            sequence.salts = self._match.tail_salts

    def _settle(self, source: Source, parent: Node | None, ids: Ids, roles: Roles) -> Node | None:
        """The resident node of a source; None (and `failed`) if it is not to be had."""
        if isinstance(source, Node):
            self.failed = "" if source.resident else "evicted"
            return source if source.resident else None
        resident = self._cache.tree.get(source.key)
        if resident is not None and resident.same_tokens(ids, roles):
            self._complete(resident, source)
            return resident
        index = self._order[id(source)]
        self.failed = self._ticket.outcome(index) if self._ticket else "not in cache"
        if self.failed or resident is not None:
            return None
        return self._swap_in(source, parent, ids, roles, self._buffers.pop(id(source)), index)

    def _swap_in(
        self, source: DiskRecord, parent: Node | None, ids: Ids, roles: Roles, buffer: PageBuffer, index: int
    ) -> Node:
        buffer.filled, buffer.sealed = len(ids), not source.tail
        node = Node(
            source.key,
            parent,
            source.parent,
            ids,
            roles,
            source.start,
            buffer,
            source.numerics,
            not source.tail,
        )
        node.saved = node.restored = True
        node.whole = source.whole
        node.salts = self._match.salts.get(source.start // self._match.page_tokens, ())
        node.approximate = bool(node.salts) or (parent is not None and parent.approximate)
        node.hidden = self._ticket.hidden(index) if self._ticket else None
        if node.hidden is not None:
            self._cache.hiddens.put(node.key, node.hidden)
        self._cache.tree.add(node)
        return node

    def _finish(self, sequence: Sequence) -> None:
        """Pages that lacked their sliding-window layers get them; where that fails the sequence ends before."""
        for node, record in self._match.unfinished:
            self._complete(node, record)
        if sequence.keep_first(reached := sequence.num_tokens) < reached:
            self.failed = self.failed or "sliding window"

    def _complete(self, node: Node, record: DiskRecord) -> None:
        read = self._ticket is not None and not self._ticket.outcome(self._order[id(record)])
        if read and all(record.parts[group] for group in self._cache.layout.window_groups):
            self._cache.complete(node, self._buffers[id(record)])

    def _unhold(self) -> None:
        for node in self._held:
            node.refs -= 1
        self._held = []


def _payload(record: DiskRecord, mapped: npt.NDArray[np.uint8] | None) -> npt.NDArray[np.uint8] | None:
    """The page's payload inside its mapped record."""
    return None if mapped is None else mapped[record.place.payload :]
