"""From a sequence's buffers to nodes of the page tree: sealed pages, and the tails that conversations end with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.kv.claims import Claims
from engine.kv.keys import Ids, Key, Roles, page_key, shifted_key
from engine.kv.layout import PageLayout, copy_rows
from engine.kv.pool import PageBuffer, PagePool
from engine.kv.sequence import Sequence
from engine.kv.shedding import Shedding
from engine.kv.tree import Node, PageTree
from engine.kv.writing import WriteBehind


class Sealing:
    """`sealed(page)` is told about every new page."""

    def __init__(
        self, tree: PageTree, pool: PagePool, claims: Claims, writing: WriteBehind, layout: PageLayout, numerics: str,
        shedding: Shedding, sealed: Callable[[Node], None],
    ) -> None:  # fmt: skip
        self._tree = tree
        self._pool = pool
        self._claims = claims
        self._writing = writing
        self._layout = layout
        self._numerics = numerics
        self._shedding = shedding
        self._sealed = sealed

    def seal(self, sequence: Sequence, buffer: PageBuffer, ids: list[int], roles: list[int]) -> Node:
        """Takes over a full buffer; returns the page, an equal one if it is resident already."""
        page_ids, page_roles = np.array(ids, np.int32), np.array(roles, np.uint8)
        key = page_key(sequence.chain_key, page_ids, page_roles)
        self._claims.settle(key)
        page = self._tree.find(key, page_ids, page_roles)
        pages = sequence.path_to(page) if page is not None else None
        if page is not None and pages is not None:
            self.complete(page, buffer)
            self._pool.release(buffer)
        else:
            page = self._new_page(sequence, key, page_ids, page_roles, buffer)
            pages = [*sequence.pages, page]
        sequence.bytes_queued += self._writing.write_through(page)
        if not page.writing:
            self._claims.stored(key)
        for anchor in self._writing.anchors(page, sequence.anchors):
            sequence.bytes_queued += self._writing.write_windows(pages, anchor)
            if anchor in sequence.anchors:
                self._shedding.keep(tuple(pages), anchor)
        return page

    def complete(self, page: Node, buffer: PageBuffer) -> None:
        """Gives a page in memory the sliding-window layers that it lacks, from a buffer with the same tokens."""
        if not page.whole:
            layers = self._layout.window_layers
            self._pool.unshed(page.buffer)
            copy_rows(buffer.view, self._layout, page.buffer.view, self._layout, len(page.ids), layers)
            page.whole = True

    def keep_tail(self, sequence: Sequence) -> Node | None:
        """The node of the sequence's tail; it shares the buffer, the sequence goes on appending behind it."""
        if not sequence.tail_tokens:
            return None
        key = sequence.tail_key()
        node = self._tree.get(key)
        if node is None:
            ids, roles = sequence.tail()
            buffer = self._pool.retain(sequence.tail_buffer())
            node = self._add(sequence, key, ids, roles, buffer, sealed=False)
            node.hidden = sequence.hidden
        return node

    def _new_page(self, sequence: Sequence, key: Key, ids: Ids, roles: Roles, buffer: PageBuffer) -> Node:
        while self._tree.get(key) is not None:  # a collision: other tokens under this key
            key = shifted_key(key, ids, ids, roles)
        buffer.sealed, buffer.filled = True, len(ids)
        page = self._add(sequence, key, ids, roles, buffer, sealed=True)
        self._sealed(page)
        return page

    def _add(self, sequence: Sequence, key: Key, ids: Ids, roles: Roles, buffer: PageBuffer, sealed: bool) -> Node:
        parent = sequence.pages[-1] if sequence.pages else None
        start = len(sequence.pages) * self._layout.page_tokens
        node = Node(key, parent, sequence.last_key, ids, roles, start, buffer, self._numerics, sealed)
        node.salts = sequence.salts
        node.approximate = bool(node.salts) or (parent is not None and parent.approximate)
        self._tree.add(node)
        return node
