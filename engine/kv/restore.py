"""Restore: brings a prefix back from disk as a transaction: pages into a list, checked, then one swap into the tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskRecord, ReadRequest, ReadTicket
from engine.kv.keys import Ids, Roles
from engine.kv.losses import LOST
from engine.kv.pool import MappedPage
from engine.kv.prefix import PartialSource, PrefixMatch, Source, leading_nodes, resident
from engine.kv.sequence import Sequence
from engine.kv.tree import Node

if TYPE_CHECKING:
    from engine.kv.cache import KvCache


class Restore:
    """Reads on an I/O thread; everything else on the engine thread.

    `take()` once `done()`. Or `begin()` once `usable()`, and `confirm()` once `done()`: what is computed in between
    must not count if it fails. Or `cancel()` at any time, which leaves a sequence that was begun to the caller.
    `failed`: why the sequence came out shorter than the match, "" if it did not.
    """

    def __init__(self, cache: KvCache, match: PrefixMatch, front: int = 0, conversation: str = "") -> None:
        """`front`: so many leading pages are left out; then `extend` takes it. `conversation`: whose it is, if any."""
        self._cache = cache
        self._match, self._conversation = match, conversation
        self.failed = ""
        self._begun: Sequence | None = None
        self._fresh: dict[int, int] = {}  # id of a node that is not in the tree yet -> its request
        self._tail: Node | None = None
        sources = [*match.pages, *([match.partial.source] if match.partial else [])]
        nodes = leading_nodes(match)
        first = max(front, len(nodes))
        on_disk = [source for source in sources[first:] if isinstance(source, DiskRecord)]
        on_disk += [record for _, record in match.unfinished]
        self._held: list[Node] = []
        cache.shedding.restores += 1
        self._hold(nodes[-1:])  # and with it all before
        self._hold([source for source in sources[first:] if resident(source)])
        self._hold([node for node, _ in match.unfinished])
        try:
            self._mapped = dict(zip(map(id, on_disk), cache.map(on_disk), strict=True))
            self._buffers = dict(enumerate(cache.place(_page(r, self._mapped[id(r)]) for r in on_disk)))
        except Exception:
            self._unhold()
            raise
        self._on_disk = on_disk
        self._order = {id(record): index for index, record in enumerate(on_disk)}
        self._ticket = self._start(first)

    @property
    def bytes_read(self) -> int:
        return self._ticket.bytes_read if self._ticket else 0

    @property
    def seconds(self) -> float:
        """Of reading and checking, once `done()`."""
        return self._ticket.seconds if self._ticket else 0.0

    @property
    def ended(self) -> float:
        """When that was (time.perf_counter); 0: nothing was read."""
        return self._ticket.ended if self._ticket else 0.0

    def done(self) -> bool:
        return self._ticket is None or self._ticket.done()

    def usable(self) -> bool:
        """What is not checked yet lies in mapped files, where it can be computed with meanwhile."""
        return self._ticket is None or self._ticket.usable()

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks until done."""
        return self._ticket is None or self._ticket.wait(timeout)

    def wait_usable(self, timeout: float | None = None) -> bool:
        return self._ticket is None or self._ticket.wait_usable(timeout)

    def cancel(self) -> None:
        """Gives up; memory is freed once the I/O thread is through with it."""
        if self._ticket is not None:
            self._ticket.cancel()
        self._unhold()
        self._cache.abandon(self)

    def take(self) -> Sequence:
        """The restored sequence. Damaged or lost pages end it early; they count as absent from now on."""
        assert self.done(), "the restore is still reading"
        sequence = self.begin()
        self.confirm()
        return sequence

    def begin(self) -> Sequence:
        """The sequence before all of it is checked: nobody else finds its pages yet."""
        assert self.usable(), "the restore is still reading"
        sequence, pages = Sequence(self._cache), leading_nodes(self._match)
        for source, (ids, roles) in self._behind(len(pages)):
            node = self._node(source, pages[-1] if pages else None, ids, roles)
            if node is None:
                break
            pages.append(node)
        sequence.hold_path(pages)
        if len(pages) == len(self._match.pages) and self._match.partial:
            self._continue(sequence, self._match.partial, pages[-1] if pages else None)
        if not self.failed and sequence.num_tokens == len(self._match.ids):
            sequence.hidden = self._cache.hiddens.get(sequence.tail_key())
        self._begun = sequence
        return sequence

    def extend(self, sequence: Sequence) -> None:
        """Goes on with a sequence that was computed to the first page of this, or further, by what was read behind it.

        Damaged or lost pages end it early.
        """
        assert self.done(), "the restore is still reading"
        pages = list(sequence.pages)
        for source, (ids, roles) in self._behind(len(pages)):
            node = self._node(source, pages[-1] if pages else None, ids, roles)
            if node is None:
                break
            pages.append(node)
        partial = self._match.partial if len(pages) == len(self._match.pages) else None
        at_border = sequence.num_tokens == len(pages) * self._match.page_tokens
        if len(pages) > len(sequence.pages) or (partial and at_border):
            sequence.settle(pages, tail=False)
            if partial:
                self._continue(sequence, partial, pages[-1])
        self._begun = sequence
        self.confirm()

    def confirm(self) -> bool:
        """Everything is checked: others find the pages from now on. False: the sequence was cut before a bad one."""
        sequence = self._begun
        assert self.done(), "the restore is still reading"
        assert sequence is not None, "not begun"
        before = sequence.num_tokens
        if self._fresh:
            self._swap_in(sequence)
        self._finish(sequence)
        sequence.bytes_read = self.bytes_read
        self._tell_losses()
        self.free()
        self._unhold()
        return sequence.num_tokens == before

    def _tell_losses(self) -> None:
        outcomes = [self._ticket.outcome(number) if self._ticket else "" for number in range(len(self._on_disk))]
        lost = [record.stretch for record, why in zip(self._on_disk, outcomes, strict=True) if why in LOST]
        if lost and self._conversation:
            self._cache.losses.met(self._conversation, lost)

    def stays(self) -> bool:
        """Everything is checked and sound, and nobody else was faster: `confirm` moves nothing of what was begun."""
        fresh = [(node, self._fresh[id(node)]) for node in self._begun_nodes() if id(node) in self._fresh]
        if not self.done() or self._match.unfinished or self._ticket is None:
            return False
        return not any(self._ticket.outcome(number) or self._cache.tree.get(node.key) for node, number in fresh)

    def _begun_nodes(self) -> list[Node]:
        pages = list(self._begun.pages) if self._begun is not None else []
        return [*pages, self._tail] if self._tail is not None else pages

    def _swap_in(self, sequence: Sequence) -> None:
        pages: list[Node] = []
        for node in sequence.pages:
            settled = self._settle(node, pages[-1] if pages else None)
            if settled is None:
                break
            pages.append(settled)
        whole = len(pages) == len(sequence.pages)
        tail = whole and (self._tail is None or self._settle(self._tail, pages[-1] if pages else None) is not None)
        sequence.settle(pages, tail)

    def free(self) -> None:
        """Releases buffers that were not swapped in."""
        for buffer in self._buffers.values():
            self._cache.pool.release(buffer)
        self._buffers, self._mapped = {}, {}

    def _behind(self, start: int) -> Iterator[tuple[Source, tuple[Ids, Roles]]]:
        """Pages from `start` on, each with its tokens."""
        size, match = self._match.page_tokens, self._match
        for i in range(start, len(match.pages)):
            cut = slice(i * size, (i + 1) * size)
            yield match.pages[i], (match.ids[cut], match.roles[cut])

    def _start(self, first: int) -> ReadTicket | None:
        partial = self._match.partial
        sources = [*self._behind(first), *([(partial.source, (partial.ids, partial.roles))] if partial else [])]
        wanted = [(source, *tokens) for source, tokens in sources if isinstance(source, DiskRecord)]
        wanted += [(record, node.ids, node.roles) for node, record in self._match.unfinished]
        requests = [
            ReadRequest(record, ids, roles, self._buffers[number].view, self._mapped[id(record)])
            for number, (record, ids, roles) in enumerate(wanted)
        ]
        return self._cache.disk.read(requests) if requests and self._cache.disk else None

    def _continue(self, sequence: Sequence, partial: PartialSource, parent: Node | None) -> None:
        node = self._node(partial.source, parent, partial.ids, partial.roles)
        if node is not None:
            sequence.hold_tail(node.buffer, *partial.lists())
            sequence.salts = self._match.tail_salts
            self._tail = node

    def _node(self, source: Source, parent: Node | None, ids: Ids, roles: Roles) -> Node | None:
        """The node of a source, in the tree or not yet; None (and `failed`) if it is not to be had."""
        if isinstance(source, Node):
            self.failed = "" if source.resident else "evicted from memory"
            return self._behind_parent(source, parent) if source.resident else None
        resident = self._cache.tree.get(source.key)
        if resident is not None and resident.same_tokens(ids, roles):
            if self._behind_parent(resident, parent) is None:
                return None
            self._hold([resident])
            self._complete(resident, source)
            return resident
        number = self._order[id(source)]
        self.failed = self._ticket.outcome(number) if self._ticket else "not in cache"
        return None if self.failed or resident is not None else self._made(source, parent, ids, roles, number)

    def _behind_parent(self, node: Node, parent: Node | None) -> Node | None:
        """The node, unless its parent took the place of one that was detached and is still held here."""
        if node.parent is parent:
            return node
        self.failed = "damaged"
        return None

    def _made(self, source: DiskRecord, parent: Node | None, ids: Ids, roles: Roles, number: int) -> Node:
        buffer = self._buffers[number]
        buffer.filled, buffer.sealed = len(ids), not source.tail
        node = Node(
            source.key, parent, source.parent, ids, roles, source.start, buffer, source.numerics, not source.tail
        )
        node.saved = node.restored = True
        node.whole = source.whole
        node.salts = self._match.salts.get(source.start // self._match.page_tokens, ())
        node.approximate = bool(node.salts) or (parent is not None and parent.approximate)
        node.hidden = self._ticket.hidden(number) if self._ticket else None
        if node.hidden is not None:
            self._cache.hiddens.put(node.key, node.hidden)
        self._fresh[id(node)] = number
        return node

    def _settle(self, node: Node, parent: Node | None) -> Node | None:
        """The node as it is in the tree from now on; None (and `failed`) if it is damaged."""
        number = self._fresh.pop(id(node), None)
        if number is None:
            return node
        if why := self._ticket.outcome(number) if self._ticket else "":
            self.failed = why
            return None
        twin = self._cache.tree.get(node.key)  # somebody else was faster
        if twin is not None:
            return self._behind_parent(twin, parent) if twin.same_tokens(node.ids, node.roles) else None
        node.parent = parent
        del self._buffers[number]
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
            self._cache.sealing.complete(node, self._buffers[self._order[id(record)]])

    def _hold(self, nodes: list[Node]) -> None:
        for node in nodes:
            node.refs += 1
        self._held += nodes

    def _unhold(self) -> None:
        self._cache.shedding.restores -= 1
        for node in self._held:
            node.refs -= 1
        self._held = []


def _page(record: DiskRecord, mapped: npt.NDArray[np.uint8] | None) -> MappedPage | None:
    return None if mapped is None else MappedPage(mapped, record.place.payload)
