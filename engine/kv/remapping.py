"""Pages that were computed here and are durable lie twice in memory: in our own, and in the system's file cache.

In idle time they move to a mapping of their segment, checked like any restore, and our own memory is given back.
"""

from __future__ import annotations

from engine.kv.disk import DiskRecord, DiskTier, ReadRequest, ReadTicket
from engine.kv.layout import PageLayout
from engine.kv.pool import MappedPage, PagePool
from engine.kv.tree import Node, PageTree

WORTH_BYTES = 16 << 20  # fewer are left for later: every mapping costs the system something


class Remapping:
    """Engine thread only, never while a step runs: pages change their addresses.

    Until it has moved, a page counts where it is: what is mapped for it is the system's file cache. Layouts with
    sliding windows stay in our own memory: their pages have several records, which no mapping has side by side.
    """

    def __init__(self, tree: PageTree, pool: PagePool, disk: DiskTier | None, layout: PageLayout) -> None:
        self._tree = tree
        self._pool = pool
        self._disk = disk if len(layout.groups) == 1 else None
        self._moving: list[tuple[Node, MappedPage]] = []
        self._ticket: ReadTicket | None = None

    def step(self, worth_bytes: int = WORTH_BYTES) -> int:
        """Begins, or takes what was begun and is checked; returns the bytes of our own memory that were let go."""
        if self._ticket is None:
            self._begin(worth_bytes)
        elif self._ticket.done():
            return self._take(self._ticket)
        return 0

    def cancel(self) -> None:
        """Gives up what was begun: until then nobody can free its pages."""
        if self._ticket is not None:
            self._ticket.cancel()
            self._ticket.wait()
            self._take(self._ticket)

    def _begin(self, worth_bytes: int) -> None:
        if self._disk is None:
            return
        self._disk.refresh()
        found = [(node, record) for node in self._tree if (record := self._durable(self._disk, node))]
        found = sorted(found, key=lambda pair: (pair[1].place.segment, pair[1].place.offset))
        if len(found) * self._pool.stride < max(1, worth_bytes):
            return
        requests = []
        for (node, record), view in zip(found, self._disk.map([record for _, record in found], False), strict=True):
            if view is not None:
                payload = view[record.place.payload :][: self._pool.payload_bytes]
                node.refs += 1
                self._moving.append((node, MappedPage(view, record.place.payload)))
                requests.append(ReadRequest(record, node.ids, node.roles, payload, view))
        self._ticket = self._disk.read(requests) if requests else None

    def _durable(self, disk: DiskTier, node: Node) -> DiskRecord | None:
        ours = node.saved and node.sealed and not node.writing and node.buffer.slab is not None
        record = disk.find(node.key) if ours else None
        if record is None or not record.whole:
            return None
        return record if (record.parent, record.numerics) == (node.parent_key, node.numerics) else None

    def _take(self, ticket: ReadTicket) -> int:
        moved = 0
        for number, (node, mapped) in enumerate(self._moving):
            node.refs -= 1
            why = ticket.outcome(number)
            if why:
                node.saved = node.saved and why == "cancelled"  # it is not the page: the next save writes it again
            elif self._may_move(node):
                self._pool.release(node.buffer)
                node.buffer = self._pool.adopt(mapped)
                node.buffer.filled = len(node.ids)
                moved += self._pool.stride
        self._pool.moves += bool(moved)
        self._moving, self._ticket = [], None
        return moved

    def _may_move(self, node: Node) -> bool:
        """Not while it is written: that reads from where it is. With other holders of its memory, it takes more."""
        return node.resident and not node.writing and (node.buffer.refs == 1 or self._pool.room > 0)
