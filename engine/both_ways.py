"""Reading and computing at once: the end of a prefix is read while a turn computes what is before it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from engine.kv.cache import KvCache
from engine.kv.disk import DiskRecord
from engine.kv.pool import KvMemoryFull
from engine.kv.prefix import PrefixMatch
from engine.kv.restore import Restore
from engine.timings import Rates
from engine.turn import Span, Turn, covered

FASTER = "faster to compute than to read"


class BothWays:
    """Engine thread only. `account(turn, match, failed, reused)` tells how much of a turn's match came back."""

    def __init__(self, cache: KvCache, rates: Rates, account: Callable[[Turn, PrefixMatch, str, int], None]) -> None:
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
        waited = match.in_memory(FASTER)
        pages, rest = divmod(waited.tokens + front, size)
        if front < match.disk_tokens and not rest and not self._cache.layout.lookback:
            turn.behind = self._cache.begin_restore(match, pages, turn.request.conversation)
            turn.meets = waited.tokens + front
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
        self.read_beyond(turn, turn.failed)

    def read_on(self, turn: Turn, match: PrefixMatch) -> bool:
        """What another process has computed meanwhile is read; False: it comes to nothing."""
        if match.tokens <= turn.kv.num_tokens or turn.removing:
            return False
        with suppress(KvMemoryFull):  # step by step there may be room, as others end
            turn.behind = self._cache.begin_restore(match, len(turn.kv.pages), turn.request.conversation)
            turn.meets, turn.failed = turn.kv.num_tokens, ""
            self._cache.claims.release(turn.request.turn)
        return turn.behind is not None

    def read_beyond(self, turn: Turn, failed: str = "") -> None:
        """What is intact behind pages that are not there is read while those are computed: with the same tokens they
        get the same keys, so what followed them follows them still. `failed`: what became of them, if that showed when
        they were read; else it is left out where all is computed as fast."""
        assert turn.match is not None
        if turn.behind or turn.removing or turn.match.missing_reason == FASTER:
            return
        found = self._cache.matcher.beyond(turn.kv.pages, turn.prompt, turn.request.shifts)
        if found and (failed or self._worth_reading(*found)):
            with suppress(KvMemoryFull):
                turn.behind = self._cache.begin_restore(*found, turn.request.conversation)
                turn.meets, turn.failed = found[1] * turn.match.page_tokens, failed

    def _worth_reading(self, match: PrefixMatch, first: int) -> bool:
        size, end = match.page_tokens, match.partial
        behind = size * sum(isinstance(page, DiskRecord) for page in match.pages[first:])
        behind += end.tokens if end and isinstance(end.source, DiskRecord) else 0
        return not self._cache.tree.costs.front(first * size, behind, match.disk_bytes, size)
