"""What the conversation that the reader looks at has on disk comes back before a question does.

One restore at a time, which a question that needs the same takes over: nothing is read twice.
"""

from __future__ import annotations

import contextlib

import numpy as np

from engine.errors import EngineError
from engine.kv.cache import KvCache
from engine.kv.prefix import PrefixMatch
from engine.kv.restore import Restore
from engine.timings import Rates


class Prefetch:
    """Engine thread only."""

    def __init__(self, cache: KvCache, rates: Rates) -> None:
        self._cache = cache
        self._rates = rates
        self._restore: Restore | None = None
        self._match: PrefixMatch | None = None

    @property
    def busy(self) -> bool:
        return self._restore is not None

    def begin(self, match: PrefixMatch, conversation: str = "") -> None:
        if self._restore is not None or not match.disk_tokens:
            return
        with contextlib.suppress(EngineError):  # no room now: the question itself will make some
            self._restore, self._match = self._cache.begin_restore(match, 0, conversation), match

    def poll(self) -> None:
        """What has been read is there for whoever asks."""
        if self._restore is not None and self._restore.done():
            restore, self._restore = self._restore, None
            sequence = restore.take()
            self._cache.tree.remember(sequence.pages)
            sequence.release()
            self._rates.saw_restore(restore.bytes_read, restore.seconds, restore.ended)

    def taken_over(self, match: PrefixMatch) -> Restore | None:
        """The restore in progress, now the caller's, where it brings just what the match wants; else None."""
        restore, own = self._restore, self._match
        if restore is None or own is None or own.salts or match.salts or match.tokens != own.tokens:
            return None
        wanted = slice(0, match.tokens)
        if not all(np.array_equal(a[wanted], b[wanted]) for a, b in ((own.ids, match.ids), (own.roles, match.roles))):
            return None
        self._restore = None
        return restore

    def cancel(self) -> None:
        if self._restore is not None:
            self._restore.cancel()
            self._restore = None
