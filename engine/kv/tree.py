"""PageTree: the pages and kept tails in memory, by key and by parent; evicts leaves only, worth least first."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.kv.disk import Gone
from engine.kv.keys import Ids, Key, Roles, token_bytes
from engine.kv.pool import PageBuffer, PagePool
from engine.kv.value import Costs
from engine.kv.walks import Walks


@dataclass(eq=False)
class Node:
    """A sealed page, or a kept tail of fewer tokens, whose K and V are in `buffer`.

    Attributes:
        key, ids, roles: see keys.py; parent: the page before, None for the first; parent_key: its key or
            the root.
        start: position of the first token.
        refs: holders: child nodes, sequences that end here, writes in progress; an evictable node has none.
        saved: it is on disk; writing: layer groups that are queued for it; restored: it came from there.
        resident: still in the tree; made, last_used: on the monotonic clock, in seconds; uses: how often.
        salts: removed ids in its key, see shift.py; approximate: it was moved, or follows what was.
        hidden: for a tail, the final hidden vector of its last token, float32 [channels].
        whole: sliding-window layers are there too; what else lies in their part of the buffer is never attended to.
        anchored: others are likely to go on within their reach, see shedding.py.
        rolling: they are on disk only until what follows is, see windows.py.
    """

    key: Key
    parent: Node | None
    parent_key: Key
    ids: Ids
    roles: Roles
    start: int
    buffer: PageBuffer
    numerics: str
    sealed: bool
    refs: int = 0
    saved: bool = False
    writing: frozenset[int] = frozenset()
    resident: bool = True
    made: float = field(default_factory=time.monotonic)
    last_used: float = 0.0
    uses: int = 0
    restored: bool = False
    salts: tuple[Ids, ...] = ()
    approximate: bool = False
    whole: bool = True
    anchored: bool = False
    rolling: bool = False
    hidden: npt.NDArray[np.float32] | None = field(default=None, repr=False)

    @property
    def stop(self) -> int:
        return self.start + len(self.ids)

    @cached_property
    def token_bytes(self) -> bytes:
        return token_bytes(self.ids, self.roles)

    def same_tokens(self, ids: Ids, roles: Roles) -> bool:
        return self.token_bytes == token_bytes(ids, roles)

    def path(self) -> list[Node]:
        """The pages from the first to this one."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]


def path_behind(pages: Sequence[Node], page: Node) -> list[Node] | None:
    """The path to a page that follows `pages`: these, or their twins where some of them were detached. None: the twins
    cannot take their place."""
    if page.parent is (pages[-1] if pages else None):
        return [*pages, page]
    path = page.path()
    if len(path) != len(pages) + 1 or not page.whole:
        return None
    pairs = zip(path[:-1], pages, strict=True)
    alike = all(a.key == b.key and a.token_bytes == b.token_bytes and a.whole >= b.whole for a, b in pairs)
    return path if alike else None


class PageTree:
    """Maps keys to resident nodes. A node keeps its parent; so what is resident is closed under prefixes.

    Engine thread only. Attributes: costs: by which the worth of pages is judged; walks: see walks.py.
    """

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self._nodes: dict[Key, Node] = {}
        self._children: dict[Key, dict[Key, Node]] = {}
        self.costs = Costs()
        self.walks = Walks()
        self._detached: list[Node] = []
        self._evicted: dict[Key, Gone] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def find(self, key: Key, ids: Ids, roles: Roles) -> Node | None:
        """The sealed page with this key and exactly these tokens: a key alone never decides."""
        return self.find_bytes(key, token_bytes(ids, roles))

    def find_bytes(self, key: Key, data: bytes) -> Node | None:
        """The same for tokens given as `keys.token_bytes`."""
        node = self._nodes.get(key)
        return node if node is not None and node.sealed and node.token_bytes == data else None

    def get(self, key: Key) -> Node | None:
        return self._nodes.get(key)

    def children(self, parent: Key) -> list[Node]:
        return list(self._children.get(parent, {}).values())

    def add(self, node: Node) -> None:
        """Takes the node over, with the caller's hold on its buffer. What follows a detached node, and was computed on
        it, is detached too, as is what holds rows of one: nobody else finds it."""
        if node.parent is not None:
            node.parent.refs += 1
        if node.buffer.spoiled or (node.parent is not None and not node.parent.resident):
            node.resident = False
            self._detached.append(node)
            return
        assert node.key not in self._nodes, "the key is resident already"
        self._nodes[node.key] = node
        self._children.setdefault(node.parent_key, {})[node.key] = node
        self._evicted.pop(node.key, None)
        self.touch(node)

    def remove(self, node: Node, reason: str = "") -> None:
        """Frees a leaf that nobody holds. `reason` is remembered for `gone`."""
        assert not node.refs, "somebody still holds the node"
        self._take_out(node, reason)
        self._free(node)

    def detach(self, node: Node, reason: str) -> None:
        """Nobody finds the node any more; it is freed once those that hold it have let go."""
        self._take_out(node, reason)
        self._detached.append(node)
        self.sweep()

    def sweep(self) -> None:
        """Frees detached nodes that nobody holds any more."""
        while free := [node for node in self._detached if not node.refs]:
            for node in free:
                self._detached.remove(node)
                self._free(node)

    def _take_out(self, node: Node, reason: str) -> None:
        assert node.resident
        node.resident = False
        self.walks.forget(node.key)
        del self._nodes[node.key]
        siblings = self._children[node.parent_key]
        del siblings[node.key]
        if not siblings:
            del self._children[node.parent_key]
        if reason:
            self._remember(node.key, reason)

    def _free(self, node: Node) -> None:
        if node.parent is not None:
            node.parent.refs -= 1
        self._pool.release(node.buffer)

    def touch(self, *nodes: Node) -> None:
        """They are used now."""
        now = time.monotonic()
        for node in nodes:
            node.last_used = now
            node.uses += 1

    def remember(self, pages: Sequence[Node]) -> None:
        """Somebody is likely to go on behind these pages, as they were found."""
        if pages and all(page.resident and self.get(page.key) is page for page in pages):
            self.walks.keep(pages)

    def gone(self, key: Key) -> Gone | None:
        """What became of a node that was here; None if it never was."""
        return self._evicted.get(key)

    def make_room(self, pages: int) -> bool:
        """Evicts leaves until `pages` can be allocated, worth least first; False if that is impossible."""
        now = time.monotonic()
        self._evict(lambda: self._pool.room >= pages, lambda node: self._worth(node, now), lambda node: True)
        return self._pool.room >= pages

    def retire(self, before: float, kept: set[Key]) -> None:
        """Frees what is on disk too, was last used before that moment and is not `kept`."""
        self._evict(
            lambda: False,
            lambda node: node.last_used,
            lambda node: node.saved and node.last_used < before and node.key not in kept,
        )

    def _evict(self, enough: Callable[[], bool], rank: Callable[[Node], float], may_go: Callable[[Node], bool]) -> None:
        order = itertools.count()
        heap = [(rank(node), next(order), node) for node in self._nodes.values() if not node.refs and may_go(node)]
        heapq.heapify(heap)
        while heap and not enough():
            node = heapq.heappop(heap)[2]
            parent = node.parent
            self.remove(node, "evicted from memory")
            if parent is not None and not parent.refs and may_go(parent):
                heapq.heappush(heap, (rank(parent), next(order), parent))

    def _worth(self, node: Node, now: float) -> float:
        age, size = now - node.last_used, self._pool.stride
        return self.costs.memory_value(node.start, len(node.ids), size, node.saved, age, node.uses)

    def _remember(self, key: Key, reason: str) -> None:
        self._evicted[key] = Gone(reason, time.time())
        if len(self._evicted) > 65536:
            del self._evicted[next(iter(self._evicted))]
