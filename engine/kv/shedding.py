"""Sliding-window layers in memory: behind the window they are let go, except around anchors, as on disk.

A page stays, with the layers of full attention; it is then like one that came back from disk without its windows.
"""

from __future__ import annotations

from weakref import WeakSet

from engine.kv.layout import PageLayout
from engine.kv.pool import PagePool
from engine.kv.sequence import Sequence
from engine.kv.tree import Node
from engine.kv.windows import looked_back_on


class Shedding:
    """Engine thread only. Attributes: restores: how many restores are under way; they rely on what they matched."""

    def __init__(self, pool: PagePool, layout: PageLayout) -> None:
        self._pool = pool
        self._layout = layout
        self._sequences: WeakSet[Sequence] = WeakSet()
        groups = [layout.groups[i] for i in layout.window_groups]
        self._range = (groups[0].start, groups[-1].stop) if groups else (0, 0)
        self.restores = 0

    def watch(self, sequence: Sequence) -> None:
        """What the sequence looks back on stays."""
        if self._layout.lookback:
            self._sequences.add(sequence)

    def keep(self, pages: tuple[Node, ...], anchor: int) -> None:
        """The windows that whoever goes on at `anchor` looks back on stay in memory."""
        needed = looked_back_on(anchor, self._layout.lookback, self._layout.page_tokens)
        for page in pages[needed.start : needed.stop] if self._layout.lookback else ():
            page.anchored = True

    def shed(self, sequence: Sequence) -> None:
        """Lets go of what lies behind the sequence's window."""
        pages = sequence.pages if self._layout.lookback else ()
        while sequence.shed_pages < len(pages):
            page = pages[sequence.shed_pages]
            if page.stop > sequence.num_tokens - self._layout.lookback or not self._settled(page):
                break
            sequence.shed_pages += 1

    def _settled(self, page: Node) -> bool:
        """Sheds the page's windows if they may go; False: they may go later."""
        if page.anchored or page.buffer.slab is None:
            return True
        if self.restores or page.writing or page.buffer.refs > 1 or any(self._needs(s, page) for s in self._sequences):
            return False
        page.whole = not self._pool.shed(page.buffer, *self._range) and page.whole
        return True

    def _needs(self, sequence: Sequence, page: Node) -> bool:
        place = page.start // self._layout.page_tokens
        holds = place < len(sequence.pages) and sequence.pages[place] is page
        return holds and page.stop > sequence.num_tokens - self._layout.lookback
