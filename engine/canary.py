"""The canary: in idle time one page that came back from disk is computed again and compared bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from engine.errors import EngineError
from engine.kv.cache import KvCache
from engine.kv.sequence import Sequence
from engine.kv.tree import Node
from engine.kv.windows import usable_tokens
from engine.messages import EngineNotice, Event
from engine.runner import RowRun, Runner


class Canary:
    """Engine thread only. Attributes: checked, failed: pages so far."""

    def __init__(self, runner: Runner, cache: KvCache, emit: Callable[[Event], None]) -> None:
        self._runner = runner
        self._cache = cache
        self._emit = emit
        self._chance = random.Random()
        self._done: set[bytes] = set()
        self._suspects: list[Node] = []
        self.checked = 0
        self.failed = 0

    def check_one(self) -> bool | None:
        """Whether a random restored page is what this machine computes; None: there is none, or it was interrupted.

        A page that differs may do so because one before it is wrong: the path to it is then checked from its beginning,
        a page per call if it is interrupted.
        """
        if self._suspects:
            return self._find_culprit()
        page = self._candidate()
        equal = self._check(page) if page else None
        if page and equal is False:
            self._suspects = page.path()
            return self._find_culprit()
        return equal

    def _find_culprit(self) -> bool | None:
        while self._suspects:
            page = self._suspects[0]
            if not page.resident:
                self._suspects = []
                return None
            equal = self._check(page) if self._checkable(page) else True
            if equal is None:
                return None
            if not equal:
                self._suspects = []
                self._distrust(page)
                return False
            self._suspects.pop(0)
        return True

    def _check(self, page: Node) -> bool | None:
        try:
            fresh = self._computed(page)
        except EngineError:  # no room for a page: another time
            return None
        if fresh is None:
            return None
        self._done.add(page.key)
        self.checked += 1
        equal = self._same(fresh, page.buffer.view)
        if self._cache.disk:
            self._cache.disk.note_check(equal)
        self._cache.log.add("info", "canary", start=page.start, tokens=len(page.ids), equal=equal)
        return equal

    def _candidate(self) -> Node | None:
        """Not of another instruction set, not moved: such pages are not promised to be equal."""
        pages = [
            node
            for node in self._cache.tree
            if node.restored and node.sealed and node.numerics == self._cache.numerics
            if not node.approximate and node.key not in self._done and self._checkable(node)
        ]
        return self._chance.choice(pages) if pages else None

    def _checkable(self, page: Node) -> bool:
        """All of its layers are there, and what they look back on."""
        spans = [(len(node.ids), node.whole) for node in page.path()]
        lookback = self._cache.layout.lookback
        return page.whole and usable_tokens(spans[:-1], lookback) == page.start

    def _computed(self, page: Node) -> npt.NDArray[np.uint8] | None:
        """The page's payload computed on the pages before it, None where the step was interrupted."""
        sequence = Sequence(self._cache)
        try:
            sequence.hold_path(page.path()[:-1])
            sequence.reserve(len(page.ids))
            run = RowRun(sequence, tuple(page.ids.tolist()), tuple(page.roles.tolist()), page.start)
            if not self._runner.step([run]).completed:
                return None
            return sequence.tail_buffer().view.copy()
        finally:
            sequence.release()

    def _same(self, one: npt.NDArray[np.uint8], two: npt.NDArray[np.uint8]) -> bool:
        """Compares what layers fill; the gaps between them may hold anything."""
        layout = self._cache.layout
        cuts = [slice(p.offset, p.offset + p.heads * layout.page_tokens * p.row_bytes) for p in layout.planes()]
        return all(np.array_equal(one[cut], two[cut]) for cut in cuts)

    def _distrust(self, page: Node) -> None:
        """It counts as absent from now on, and with it what follows it in memory and is not in use."""
        self.failed += 1
        self._cache.losses.distrust(page, right=0.0)  # its checksum is: it was wrong before it was written
        last = page.start + len(page.ids) - 1
        self._emit(
            EngineNotice(
                "A kept page is not what the model computes.",
                f"Tokens {page.start:,} to {last:,} were computed again for a check and came out different.",
                "They will be read again from the stored text. If this is seen often, have the memory tested.",
            )
        )
