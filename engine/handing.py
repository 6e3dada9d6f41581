"""How far a prompt is in the files while a turn computes it: so much is told as kept, and whoever is killed then goes
on from there at least."""

from __future__ import annotations

from engine.document_job import safe_tokens
from engine.kv.cache import KvCache
from engine.messages import PrefillProgress
from engine.turn import Turn

# Of the step's time, until the files hold what it computed: mostly at once.
_WAIT_SHARE, _MOST_WAIT_SECONDS = 0.02, 0.005


class Handing:
    """Engine thread only."""

    def __init__(self, cache: KvCache) -> None:
        self._cache = cache

    def progress(self, turn: Turn, tokens_per_second: float, step_ms: float, *, beside: bool) -> PrefillProgress:
        """After a step of the prompt that took so long. `beside`: others want to go on, so nothing is waited for; nor
        behind the last step, which the first token follows."""
        last = turn.kv.num_tokens == len(turn.wanted)
        wait = 0.0 if beside or last else min(_MOST_WAIT_SECONDS, _WAIT_SHARE * step_ms / 1e3)
        return turn.progress(tokens_per_second, self._kept(turn, wait))

    def _kept(self, turn: Turn, wait: float) -> int:
        """Tokens in whole pages that are in the files; all where nothing is saved."""
        disk, there = self._cache.disk, turn.kv.num_tokens
        if disk is None:
            return there
        pages = len(turn.kv.pages) * turn.kv.page_tokens
        if turn.handing is None and pages > turn.handed:
            turn.handing = pages, disk.hand_over()
        if turn.handing is not None and turn.handing[1].wait(wait):
            (tokens, handed), turn.handing = turn.handing, None
            if not handed.written:
                return there
            self._cache.poll()
            turn.handed = min(tokens, safe_tokens(turn.kv))
            if pages > turn.handed:
                turn.handing = pages, disk.hand_over()
        return turn.handed
