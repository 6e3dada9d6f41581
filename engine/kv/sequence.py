"""Sequence: the KV of one token list; sealed shared pages, then a writable tail that is copied when shared.

Engine thread only. The life of a step: `reserve(n)`, the kernels write rows through `block_table()`,
`commit(ids, roles)`.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.kv.keys import Ids, Key, Roles, page_key
from engine.kv.layout import copy_rows
from engine.kv.pool import PageBuffer
from engine.kv.shift import salt_key
from engine.kv.tree import Node, path_behind
from engine.kv.windows import usable_tokens
from engine.messages import Tokens

if TYPE_CHECKING:
    from engine.kv.cache import KvCache


class Sequence:
    """Holds its last page (which holds the pages before: they are always its path) and the buffers after it.

    Attributes:
        bytes_read: read from disk to build it; bytes_queued: queued for writing on its behalf (both bytes).
        hidden: final hidden vector (float32 [channels], after the output norm) of the last token, or None
            if it is not known.
        anchors: positions at which others are likely to go on, see windows.py; doubted: see pool.py.
    """

    def __init__(self, cache: KvCache) -> None:
        self._cache = cache
        self._pages: list[Node] = []
        self._open: list[PageBuffer] = []  # the first holds the tail's tokens, the others are reserved room
        self._ids: list[int] = []  # of the tail
        self._roles: list[int] = []
        self._table: npt.NDArray[np.uint64] | None = None
        self._moves = -1  # of pages when the table was made
        self.salts: tuple[Ids, ...] = ()  # of the tail's page, see shift.py
        self.anchors: tuple[int, ...] = ()
        self.hidden: npt.NDArray[np.float32] | None = None
        self.bytes_read = 0
        self.bytes_queued = 0
        self.released = self.doubted = False
        self.shed_pages = 0  # leading pages whose windows are settled, see shedding.py
        cache.shedding.watch(self)

    @property
    def page_tokens(self) -> int:
        return self._cache.layout.page_tokens

    @property
    def pages(self) -> tuple[Node, ...]:
        return tuple(self._pages)

    @property
    def num_tokens(self) -> int:
        return len(self._pages) * self.page_tokens + len(self._ids)

    @property
    def tail_tokens(self) -> int:
        return len(self._ids)

    @property
    def tokens(self) -> Tokens:
        """All tokens, in order."""
        ids = [page.ids for page in self._pages] + [np.array(self._ids, np.int32)]
        roles = [page.roles for page in self._pages] + [np.array(self._roles, np.uint8)]
        return Tokens(tuple(np.concatenate(ids).tolist()), tuple(np.concatenate(roles).tolist()))

    @property
    def last_key(self) -> Key:
        """Key of the last sealed page, or the root."""
        return self._pages[-1].key if self._pages else self._cache.root

    @property
    def chain_key(self) -> Key:
        """What stands for `last_key` in the key of the next page."""
        return salt_key(self.last_key, self.salts)

    @property
    def approximate(self) -> bool:
        """Some of its tokens were moved after a removal."""
        return bool(self.salts and self._ids) or (bool(self._pages) and self._pages[-1].approximate)

    @property
    def detached(self) -> bool:
        """Some of it was taken out of the tree (see losses.py), so nobody else is to find what it computes."""
        return (bool(self._pages) and not self._pages[-1].resident) or (bool(self._ids) and self._open[0].spoiled)

    def tail_key(self) -> Key:
        """The key the tail would be stored under; equals `last_key` for an empty tail."""
        if not self._ids:
            return self.last_key
        return page_key(self.chain_key, *self.tail())

    def block_table(self) -> npt.NDArray[np.uint64]:
        """uint64 [pages]: payload address of each page, reserved room included. Valid until the next change."""
        if self._table is None or self._moves != self._cache.pool.moves:
            self._moves = self._cache.pool.moves
            addresses = [page.buffer.address for page in self._pages] + [b.address for b in self._open]
            self._table = np.array(addresses, np.uint64)
        return self._table

    def reserve(self, tokens: int) -> None:
        """Makes room for `tokens` more rows and copies a shared tail. KvMemoryFull: no room, nothing changed."""
        needed = -(-(len(self._ids) + tokens) // self.page_tokens) - len(self._open)
        copy = bool(self._ids) and tokens > 0 and not self._appendable()
        if needed > 0 or copy:
            fresh = self._cache.allocate(max(0, needed) + copy)
            if copy:
                self._replace_tail(fresh.pop())
            self._open.extend(fresh)
            self._table = None

    def reserve_spare(self, tokens: int) -> int:
        """After `reserve`: makes room for up to `tokens` more rows, as far as nothing has to go for it. Returns for how
        many there is room."""
        rest = len(self._ids)
        self.reserve(min(tokens, (len(self._open) + self._cache.pool.room) * self.page_tokens - rest))
        return len(self._open) * self.page_tokens - rest

    def commit(self, ids: tuple[int, ...] | list[int], roles: tuple[int, ...] | list[int]) -> None:
        """Counts tokens whose rows were written into the reserved room; full pages are sealed and queued
        for writing.
        """
        size, room = self.page_tokens, len(self._open) * self.page_tokens - len(self._ids)
        assert len(ids) == len(roles) <= room, "more tokens than reserved"
        assert not ids or not self._ids or self._appendable(), "not reserved since the tail was shared or cut"
        self.hidden = None
        for start in [0, *range(size - len(self._ids), len(ids), size)] if ids else []:
            count = min(len(ids) - start, size - len(self._ids))
            self._ids.extend(ids[start : start + count])
            self._roles.extend(roles[start : start + count])
            self._open[0].filled, self._open[0].writer = len(self._ids), self
            if len(self._ids) == size:
                self._seal()
        self._cache.shedding.shed(self)

    def keep_first(self, tokens: int) -> int:
        """Drops everything after the first `tokens` tokens; a cut page is copied at the next `reserve`.

        Returns the tokens kept: fewer where sliding-window layers before that place are not held.
        """
        kept = self.usable(tokens)
        self._cut(kept)
        return kept

    def usable(self, tokens: int) -> int:
        """The longest prefix of at most `tokens` tokens that can be continued."""
        assert 0 <= tokens <= self.num_tokens
        if not self._cache.layout.lookback:
            return tokens
        count, rest = divmod(tokens, self.page_tokens)
        spans = [(self.page_tokens, page.whole) for page in self._pages[:count]]
        if rest:
            spans.append((rest, count == len(self._pages) or self._pages[count].whole))
        return usable_tokens(spans, self._cache.layout.lookback)

    def _cut(self, tokens: int) -> None:
        if tokens == self.num_tokens:
            return
        pages, rest = divmod(tokens, self.page_tokens)
        if pages < len(self._pages):
            self._reopen(pages, rest)
        else:
            del self._ids[rest:], self._roles[rest:]
            self.salts = self.salts if rest else ()
            self._give_back(1 if rest else 0)
        self.hidden, self._table = None, None

    truncate = keep_first  # as a file's truncate: the argument is the new length

    def trim(self, tokens: int) -> int:
        """Drops the last `tokens` tokens, see `keep_first`."""
        return self.keep_first(self.num_tokens - tokens)

    def fork(self) -> Sequence:
        """A second sequence with the same tokens; nothing is copied until one of them appends to a shared tail."""
        twin = Sequence(self._cache)
        twin._hold_pages(self._pages)
        if self._ids:
            twin.hold_tail(self._open[0], self._ids, self._roles)
        twin.hidden, twin.salts, twin.anchors = self.hidden, self.salts, self.anchors
        return twin

    def keep_hidden(self, hidden: npt.NDArray[np.float32]) -> None:
        """Keeps the final hidden vector of the last token: a later prompt that ends here needs no layer run."""
        self.hidden = hidden.copy()
        if not self.detached:
            self._cache.hiddens.put(self.tail_key(), self.hidden)

    def release(self) -> None:
        """Lets go of everything; pages stay in the cache until they are evicted. May be called twice."""
        if not self.released:
            self._give_back(0)
            self._hold_pages([])
            self._ids, self._roles, self.released = [], [], True

    # --- used by the cache only ---

    def extend(self, page: Node) -> None:
        """Appends a sealed page, see `path_to`, in place of the tail."""
        self._cut(len(self._pages) * self.page_tokens)
        self._give_back(0)
        self._hold_pages(self.path_to(page) or self._pages)

    def path_to(self, page: Node) -> list[Node] | None:
        """See tree.path_behind."""
        return path_behind(self._pages, page)

    def open_buffers(self) -> list[PageBuffer]:
        """Buffers of the tail's page and of reserved room behind it."""
        return self._open

    def settle(self, pages: list[Node], tail: bool) -> None:
        """Goes on with equal pages; where there are fewer of them, or not `tail`, without what followed."""
        if len(pages) != len(self._pages) or not tail:
            self._give_back(0)
            self._ids, self._roles, self.salts, self.hidden = [], [], (), None
        self._hold_pages(pages)

    def cut_lost(self) -> bool:
        """Ends the sequence before memory that was lost in a mapped file, if there is some; whether there was."""
        pages = [*itertools.takewhile(lambda page: not page.buffer.lost, self._pages)]
        whole = len(pages) == len(self._pages) and not (self._ids and self._open[0].lost)
        if not whole:
            self.doubted = any(page.buffer.doubted for page in self._pages[len(pages) :])
            self.settle(pages, tail=False)
        return not whole

    def hold_path(self, pages: list[Node]) -> None:
        """Begins with pages that follow each other from the first one on."""
        assert not self._pages
        self._hold_pages(pages)

    def tail(self) -> tuple[Ids, Roles]:
        return np.array(self._ids, np.int32), np.array(self._roles, np.uint8)

    def tail_buffer(self) -> PageBuffer:
        return self._open[0]

    def _hold_pages(self, pages: list[Node]) -> None:
        self.shed_pages = min(self.shed_pages, len(pages))
        if pages:
            pages[-1].refs += 1
        if self._pages:
            self._pages[-1].refs -= 1
        self._pages, self._table = list(pages), None

    def hold_tail(self, buffer: PageBuffer, ids: list[int], roles: list[int]) -> None:
        """Starts the tail with rows that already lie in `buffer`."""
        assert not self._open
        self._open, self._table = [self._cache.pool.retain(buffer)], None
        self._ids, self._roles = list(ids), list(roles)

    def _appendable(self) -> bool:
        tail = self._open[0]
        if tail.sealed:
            return False
        if tail.refs == 1:
            tail.writer, tail.filled = self, len(self._ids)
        return tail.writer is self and tail.filled == len(self._ids)

    def _replace_tail(self, fresh: PageBuffer) -> None:
        layout = self._cache.layout
        copy_rows(self._open[0].view, layout, fresh.view, layout, len(self._ids))
        self._cache.pool.passes_on(self._open[0], fresh)
        self._cache.pool.release(self._open[0])
        fresh.writer, fresh.filled = self, len(self._ids)
        self._open[0] = fresh

    def _seal(self) -> None:
        page = self._cache.sealing.seal(self, self._open.pop(0), self._ids, self._roles)
        self._hold_pages(self.path_to(page) or [*self._pages, page])
        self._ids, self._roles, self.salts = [], [], ()

    def _reopen(self, pages: int, rest: int) -> None:
        """Cuts inside a sealed page: its first `rest` rows become the tail, still in the page's own buffer."""
        cut = self._pages[pages]
        self._give_back(0)
        self._ids, self._roles = [], []
        if rest:
            self.hold_tail(cut.buffer, cut.ids[:rest].tolist(), cut.roles[:rest].tolist())
        self.salts = cut.salts if rest else ()
        self._hold_pages(self._pages[:pages])

    def _give_back(self, keep: int) -> None:
        for buffer in self._open[keep:]:
            if buffer.writer is self:
                buffer.writer = None
            self._cache.pool.release(buffer)
        del self._open[keep:]
        self._table = None
