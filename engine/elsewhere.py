"""What another process computes is waited for and read, not computed twice. For a sensible time: it may be stopped, or
slower than we are."""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, auto

from engine.kv.adopt import following_keys
from engine.kv.cache import KvCache
from engine.kv.claims import Claimed
from engine.kv.keys import Key
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from engine.timings import Rates

_AHEAD_TOKENS = 1024  # are claimed at once: two steps, so that the lead does not change hands between them
_LOOK_SECONDS = 0.02
# Waited is so long, and so many times what computing here would take, for the next pages: what was computed comes 2 s
# later at the most, unless the disk takes longer. While pages keep coming it is worth much more: two that compute the
# same on one machine are both slower than either was measured alone.
_PATIENCE_SECONDS, _STALLED_TIMES, _SLOWER_TIMES, _STEP_TOKENS = 3.0, 3.0, 12.0, 512
_UNKNOWN_RATE = 50.0  # tokens a second: of a model that never ran here; a kill shows at once all the same


class Go(Enum):
    COMPUTE = auto()
    WAIT = auto()
    READ = auto()  # the next page has come to the disk


@dataclass
class Waiting:
    """Of one turn or document. `alone`: it does not wait any more; `spent`: seconds, `stalled` of which since the last
    page came; `start`: tokens it had before, `tokens`: has now."""

    alone: bool = False
    spent: float = 0.0
    stalled: float = 0.0
    start: int = -1
    tokens: int = -1
    since: float = 0.0  # last asked and waiting then; 0: not
    looked: float = 0.0

    def pause(self) -> None:
        """Nobody waits any more until it is asked again."""
        self.since = 0.0


class Elsewhere:
    """Engine thread only."""

    def __init__(self, cache: KvCache, rates: Rates) -> None:
        self._cache = cache
        self._rates = rates

    def look(self, waiting: Waiting, sequence: Sequence, tokens: Tokens, owner: Hashable) -> Go:
        """What to do for the page that follows the sequence in `tokens`. Quick: it is asked again and again."""
        if waiting.alone or self._cache.disk is None:
            return Go.COMPUTE
        keys = following_keys(sequence, tokens, max(2, _AHEAD_TOKENS // sequence.page_tokens))
        claimed = self._cache.claims.show(keys, owner) if keys else Claimed.HERE
        if claimed is not Claimed.ELSEWHERE:
            waiting.since = 0.0
            came = claimed is Claimed.JUST_NOW and self._has_come(waiting, keys[0], now=True)
            return Go.READ if came else Go.COMPUTE
        if self._has_come(waiting, keys[0]):
            return Go.READ
        return Go.WAIT if self._patient(waiting, sequence) else Go.COMPUTE

    def _has_come(self, waiting: Waiting, key: Key, now: bool = False) -> bool:
        moment, disk = time.monotonic(), self._cache.disk
        if disk is None or (moment - waiting.looked < _LOOK_SECONDS and not now):
            return False
        waiting.looked = moment
        disk.refresh()
        return disk.find(key) is not None

    def _patient(self, waiting: Waiting, sequence: Sequence) -> bool:
        now, tokens = time.monotonic(), sequence.num_tokens
        passed = now - waiting.since if waiting.since else 0.0
        came, waiting.tokens = tokens != waiting.tokens, tokens
        waiting.start = tokens if waiting.start < 0 else waiting.start
        waiting.since, waiting.spent = now, waiting.spent + passed
        waiting.stalled = 0.0 if came else waiting.stalled + passed
        stalls = waiting.stalled > self._fit(0, _STALLED_TIMES)
        slower = waiting.spent > self._fit(tokens - waiting.start, _SLOWER_TIMES)
        waiting.alone = stalls or slower
        if waiting.alone:
            why = "nothing came any more" if stalls else "it is slower"
            came_here = tokens - waiting.start
            self._cache.log.add("info", "wait_ended", why=why, tokens=came_here, milliseconds=waiting.spent * 1e3)
        return not waiting.alone

    def _fit(self, tokens: int, times: float) -> float:
        """Seconds to wait for so many tokens and one step more, `times` as long as they would take here."""
        return _PATIENCE_SECONDS + times * (tokens + _STEP_TOKENS) / (self._rates.prefill or _UNKNOWN_RATE)
