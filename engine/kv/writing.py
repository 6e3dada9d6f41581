"""Write-behind as the cache sees it: what of a page is still to be written, and what became of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from engine.kv.disk import DiskTier, WriteRequest
from engine.kv.keys import Key
from engine.kv.layout import PageLayout
from engine.kv.tree import Node
from engine.kv.windows import anchors_in, looked_back_on


class WriteBehind:
    """Queues pages for the disk tier; holds them until they are written. Engine thread only, but for the callbacks."""

    def __init__(self, disk: DiskTier | None, layout: PageLayout, stored: Callable[[Key], None]) -> None:
        """`stored` is told of keys that are durable, or will not be."""
        self._disk = disk
        self._stored = stored
        self._layout = layout
        self._written: deque[tuple[Node, frozenset[int], bool]] = deque()  # filled by the I/O thread

    def poll(self) -> None:
        """Takes note of finished writes."""
        while self._written:
            node, groups, durable = self._written.popleft()
            node.refs -= 1
            node.writing, node.saved = node.writing - groups, durable
            if not node.writing:
                self._stored(node.key)

    def write(self, node: Node, conversation: str, windows: bool = False) -> int:
        """Queues what of the node is not on disk; sliding-window layers only if they are asked for, or in a tail.

        Returns the bytes.
        """
        if self._disk is None or not node.resident or node.buffer.lost:
            return 0
        record = self._disk.find(node.key)
        parts = record.parts if record is not None and record.parent == node.parent_key else ()
        node.saved = bool(parts)
        left_out = () if node.whole and (windows or not node.sealed) else self._layout.window_groups
        groups = frozenset(i for i in range(len(self._layout.groups)) if i not in left_out and not (parts and parts[i]))
        groups -= node.writing
        return self._queue(self._disk, node, conversation, groups) if groups else 0

    def write_through(self, page: Node) -> int:
        """Queues a page that was just sealed in all layers: whoever is killed goes on at its end. Returns the bytes."""
        size = self.write(page, "", windows=True)
        page.rolling = page.rolling or (size > 0 and bool(self._layout.window_groups))
        return size

    def let_go(self, pages: Sequence[Node], anchor: int) -> None:
        """The sliding-window layers that were written through and lie behind an anchor are not needed on disk."""
        size = self._layout.page_tokens
        needed = looked_back_on(anchor // size * size, self._layout.lookback, size)  # a tail may be written later
        gone = [page for page in pages[: needed.start] if page.rolling]
        for page in gone:
            page.rolling = False
        if gone and self._disk:
            window = pages[needed.start : needed.stop]
            self._disk.drop_windows([page.key for page in gone], [page.key for page in window])

    def write_windows(self, pages: Sequence[Node], anchor: int) -> int:
        """Queues the sliding-window layers that whoever goes on at `anchor` looks back on."""
        if not self._layout.lookback:
            return 0
        needed = looked_back_on(anchor, self._layout.lookback, self._layout.page_tokens)
        chosen = pages[needed.start : needed.stop] if self._disk else ()
        if chosen and self._disk:
            self._disk.refresh()
        for page in chosen:
            page.rolling = False
        written = sum(self.write(page, "", windows=True) for page in chosen)
        self.let_go(pages, anchor)
        return written

    def anchors(self, page: Node, wanted: Sequence[int]) -> list[int]:
        """The anchors in a page that was just sealed."""
        lookback = self._layout.lookback
        return anchors_in(page.start, page.stop, wanted, lookback) if lookback else []

    def _queue(self, disk: DiskTier, node: Node, conversation: str, groups: frozenset[int]) -> int:
        node.refs += 1
        node.writing |= groups
        request = WriteRequest(
            node.key, node.parent_key, not node.sealed, node.start, node.ids, node.roles, node.buffer.view,
            node.numerics, conversation, node.hidden, node.approximate, tuple(sorted(groups)),
        )  # fmt: skip
        return disk.write(request, lambda durable: self._written.append((node, groups, durable)))
