"""Reading and computing at once: the end of a prefix is read while a turn computes what is before it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from engine.kv.cache import KvCache
from engine.kv.match import PrefixMatch, Source
from engine.kv.pool import KvMemoryFull
from engine.kv.restore import Restore
from engine.kv.tree import Node
from engine.timings import Rates
from engine.turn import Span, Turn, covered


class BothWays:
    """Engine thread only. `account(turn, match, failed, reused)` tells how much of a turn's match came back."""

    def __init__(
        self, cache: KvCache, rates: Rates, account: Callable[[Turn, PrefixMatch, str, int], None]
    ) -> None:
        self._cache = cache
        self._rates = rates
        self._account = account

    def divided(self, turn: Turn, match: PrefixMatch) -> PrefixMatch:
        """What of the match is waited for. Where this machine computes faster than it reads what lies on disk, that is
        left out; where both take about as long, its end is read while the turn computes what is before."""
        size = match.page_tokens
        front = self._cache.tree.costs.front(match.memory_tokens, match.disk_tokens, match.disk_bytes, size)
        if not front or turn.removing:
            return match
        waited = match.in_memory("faster to compute than to read")
        pages, rest = divmod(waited.tokens + front, size)
        if front < match.disk_tokens and not rest and not self._cache.layout.lookback:
            turn.behind, turn.meets = self._cache.begin_restore(match, pages), waited.tokens + front
        return waited

    def meet(self, turn: Turn, behind: Restore) -> None:
        """Goes on with what was read meanwhile, once the turn has computed all before it."""
        if turn.kv.num_tokens < turn.meets or not behind.done():
            return
        before, turn.behind = turn.kv.num_tokens, None
        behind.extend(turn.kv)
        turn.bytes_read += behind.bytes_read
        self._rates.saw_restore(behind.bytes_read, behind.seconds, behind.ended)
        turn.kv.bytes_read = turn.bytes_read
        assert turn.match is not None
        turn.found.append(Span(before, max(before, turn.kv.num_tokens)))  # what is before it was computed
        self._account(turn, turn.match, behind.failed or turn.failed, covered(turn.found))
        self.read_beyond(turn, turn.match, turn.failed)

    def read_beyond(self, turn: Turn, match: PrefixMatch, failed: str) -> None:
        """What is intact behind a page that was damaged or lost (`failed`: which of the two) is read while that page
        is computed again: with the same tokens it gets the same key, so what followed it follows it still."""
        if not failed or turn.behind or turn.removing or self._cache.layout.lookback:
            return
        first, last = self._intact(match, turn.kv.num_tokens // match.page_tokens + 1)
        if last > first:
            tail = match.partial if last == len(match.pages) else None
            with suppress(KvMemoryFull):
                turn.behind = self._cache.begin_restore(replace(match, pages=match.pages[:last], partial=tail), first)
                turn.meets, turn.failed = first * match.page_tokens, failed

    def _intact(self, match: PrefixMatch, start: int) -> tuple[int, int]:
        """The next pages from `start` on that are still there: the first, and the first after it that is not."""
        there = [self._is_there(page) for page in match.pages]
        first = next((number for number in range(start, len(there)) if there[number]), len(there))
        return first, next((number for number in range(first, len(there)) if not there[number]), len(there))

    def _is_there(self, page: Source) -> bool:
        return isinstance(page, Node) or (self._cache.disk is not None and self._cache.disk.find(page.key) is not None)
