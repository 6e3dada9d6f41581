"""Admission: gives a turn its KV (from memory, from disk, shared with a running turn) and takes it back at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import numpy.typing as npt

from engine.both_ways import FASTER, BothWays
from engine.elsewhere import Elsewhere, Go
from engine.errors import ContextOverflow
from engine.handing import Handing
from engine.kv.cache import KvCache
from engine.kv.disk import Gone
from engine.kv.pool import KvMemoryFull
from engine.kv.prefix import PrefixMatch
from engine.kv.reasons import why_missing
from engine.kv.shift import KeyRotation
from engine.messages import Event, Removal, TurnQueued, TurnRestored
from engine.prefetch import Prefetch
from engine.reuse_log import log_reuse
from engine.timings import Rates, now_ms
from engine.turn import Phase, Span, Turn, split_reused

LONG_CHECK_MS = 30.0


class Admission:
    """Between the scheduler and the cache. Engine thread only."""

    def __init__(
        self,
        cache: KvCache,
        rates: Rates,
        context: int,
        emit: Callable[[Event], None],
        rotation: KeyRotation | None = None,
        prefetch: Prefetch | None = None,
        long_check_ms: float = LONG_CHECK_MS,
    ) -> None:
        """`rotation` None: the model's keys cannot be moved, so removals are computed. `prefetch`: what is read already
        when a turn comes. `long_check_ms`: a turn whose restore takes at least so long computes before it is checked.
        """
        self._long_check_ms = long_check_ms
        self._prefetch = prefetch
        self._early: list[Turn] = []  # they compute while what they came from is being checked
        self._cache, self.handing = cache, Handing(cache)
        self._both_ways = BothWays(cache, rates, self._account)
        self._elsewhere = Elsewhere(cache, rates)
        self._rotation = rotation
        self._rates, self._context = rates, context
        self._emit = emit

    def queued(self, turn: Turn, ahead: int) -> None:
        self._emit(TurnQueued(turn.request.turn, turn.request.conversation, ahead))

    def begin(self, turn: Turn) -> None:
        """Finds what is computed already and starts to bring it back. Raises ContextOverflow, KvMemoryFull."""
        self._check_fit(turn)
        turn.clock.admitted()
        self._publish()
        match = self._find(turn)
        restore = self._prefetch.taken_over(match) if self._prefetch else None
        if restore is None:
            match = self._both_ways.divided(turn, match)
        turn.match, turn.phase = match, Phase.RESTORING
        turn.waiting.alone = match.missing_reason == FASTER
        if restore is None and not match.disk_tokens and not match.unfinished:
            turn.sequence = self._cache.sequence(match)
            self._came_back(turn, "")
        else:
            turn.restore = restore or self._cache.begin_restore(match, 0, turn.request.conversation)

    def poll(self, turn: Turn, alone: bool) -> None:
        """Lets a turn compute once its restore is through; one that is alone while it is still being checked."""
        restore = turn.restore
        assert restore is not None
        if not (restore.done() or (self._may_be_early(turn, alone) and restore.usable())):
            return
        if turn.sequence is not None:
            turn.sequence.release()
        turn.sequence = restore.begin()
        if restore.done():
            self._confirm(turn)
            if restore.failed and self._begin_again(turn, restore.failed):
                return
        else:
            self._early.append(turn)
        self._came_back(turn, restore.failed)

    def _came_back(self, turn: Turn, restore_failed: str) -> None:
        """The turn may compute on what was found. `restore_failed`: why that is less than there was."""
        match = turn.match
        assert match is not None
        turn.clock.restore = now_ms() - turn.clock.submitted - turn.clock.queue
        if turn.removing:
            self._remove(turn, turn.removing)
        turn.kv.anchors = (turn.request.shared_tokens, turn.request.history_tokens, match.parted)
        turn.approximate = turn.kv.approximate
        turn.found = [Span(0, turn.kv.num_tokens)]
        failed = restore_failed or turn.failed
        self._account(turn, match, failed, turn.kv.num_tokens)
        self._cache.tree.touch(*turn.kv.pages)
        self._both_ways.read_beyond(turn, failed)
        self._log_settled(turn)
        turn.phase = Phase.PREFILL

    def _begin_again(self, turn: Turn, failed: str) -> bool:
        """A part of what was read is damaged. With sliding windows, of which those of an earlier place were not read,
        as long as it comes to more."""
        if turn.removing or not self._cache.layout.lookback:
            return False
        match = self._find(turn)
        if match.tokens <= turn.kv.num_tokens:
            return False
        with suppress(KvMemoryFull):
            turn.restore = self._cache.begin_restore(match, 0, turn.request.conversation)
            turn.match = match
            turn.phase, turn.failed = Phase.RESTORING, failed
            self._early = [other for other in self._early if other is not turn]
        return turn.restore is not None

    def wait(self, turn: Turn, alone: bool, seconds: float) -> None:
        """Until the turn's restore lets it compute, or that long."""
        assert turn.restore is not None
        early = self._may_be_early(turn, alone)
        turn.restore.wait_usable(seconds) if early else turn.restore.wait(seconds)

    def _may_be_early(self, turn: Turn, alone: bool) -> bool:
        """Others would have to wait for its checks too; and what is moved must have been checked. Beside a step the
        checks take from it what they take: only where they are long the step comes first."""
        assert turn.match is not None
        long = self._rates.restore_ms(turn.match.disk_bytes) >= self._long_check_ms
        return alone and turn.removing is None and long

    def sound(self, turn: Turn) -> bool:
        """Waits until all is checked that the turn's KV came from. False: a part of it was damaged or lost, and its
        sequence was cut there: what was computed on it does not count, and the rest is computed again."""
        restore, match = turn.restore, turn.match
        whole = restore is None or self._confirm(turn)
        kept = self._cache.losses.sound(turn.kv, at_once=not turn.generated)
        if whole and kept:
            if not turn.logged:
                self._log_settled(turn)
            return True
        if not kept:
            turn.phase = Phase.PREFILL
        left = turn.cut()
        if match is not None and left < turn.reused.total:  # what was lost is computed after all
            failed = restore.failed if restore and not whole else "damaged"
            self._account(turn, match, failed, left)
            if whole or not self._begin_again(turn, failed):
                self._both_ways.read_beyond(turn, failed)
        self._log_settled(turn)
        return False

    def _confirm(self, turn: Turn) -> bool:
        restore, turn.restore = turn.restore, None
        assert restore is not None
        restore.wait()
        whole = restore.confirm()
        turn.bytes_read = restore.bytes_read
        turn.clock.checked(restore.ended * 1e3)
        self._rates.saw_restore(restore.bytes_read, restore.seconds, restore.ended)
        return whole

    def _publish(self) -> None:
        """What others have read, and is checked meanwhile, is not read again: their steps may be parked for long."""
        self._early = [turn for turn in self._early if turn.restore is not None and turn.sequence is not None]
        for turn in self._early:
            if turn.restore is not None and turn.restore.stays():
                self._confirm(turn)

    def _find(self, turn: Turn) -> PrefixMatch:
        """What is computed of the prompt; or of what it was before a removal, where more of that can be used."""
        request, removal = turn.request, turn.request.removal
        found = self._cache.match(turn.prompt, request.shifts, request.conversation, request.history_tokens)
        if removal is None or self._rotation is None:
            return found
        before = removal.undone(turn.prompt)
        whole = self._cache.match(before, removal.shifts, request.conversation)
        if whole.tokens - len(removal.removed) <= max(found.tokens, removal.position):
            return found
        turn.removing = removal
        return whole

    def _remove(self, turn: Turn, removal: Removal) -> None:
        """Takes the range out of what was restored; exactly what is left of it then counts as reused."""
        restored, started = turn.kv, now_ms()
        assert self._rotation is not None
        try:
            if restored.num_tokens >= removal.position + len(removal.removed):
                turn.sequence = self._cache.remove_range(
                    restored, removal.position, len(removal.removed), self._rotation
                )
            else:  # a damaged page ended it early
                turn.sequence = restored.fork()
                turn.sequence.keep_first(min(removal.position, restored.num_tokens))
        finally:
            restored.release()
        turn.clock.remove = now_ms() - started
        self._cache.log.add(
            "info",
            "remove",
            conversation=turn.request.conversation,
            position=removal.position,
            tokens=len(removal.removed),
            milliseconds=turn.clock.remove,
        )

    def may_compute(self, turn: Turn) -> bool:
        """Takes over pages another turn has computed meanwhile; False while one computes the page needed next."""
        self._adopt(turn)
        if turn.behind is not None:
            self._both_ways.meet(turn, turn.behind)
            self._log_settled(turn)
            self._adopt(turn)
            if turn.behind is not None and turn.kv.num_tokens >= turn.meets:
                return False
        key = self._cache.next_key(turn.kv, turn.wanted)
        if key is None:
            return True
        return self._cache.claims.claim(key, turn.request.turn) and self._is_first(turn)

    def _adopt(self, turn: Turn) -> None:
        """It may lead beyond the place where what is read behind it would have been met."""
        if gained := self._cache.adopt(turn.kv, turn.wanted):
            turn.taken.append(Span(turn.kv.num_tokens - gained, turn.kv.num_tokens))

    def _is_first(self, turn: Turn) -> bool:
        """False while another process computes the page needed next, or while what it computed is read."""
        go = self._elsewhere.look(turn.waiting, turn.kv, turn.wanted, turn.request.turn)
        return go is Go.COMPUTE or (go is Go.READ and not self._both_ways.read_on(turn, self._find(turn)))

    def kept_hidden(self, turn: Turn) -> npt.NDArray[np.float32] | None:
        """The final hidden vector [channels] where the whole prompt is cached and its end was kept."""
        complete = turn.kv.num_tokens == len(turn.prompt) and not turn.generated
        return turn.kv.hidden if complete else None

    def keep_prompt_end(self, turn: Turn, hidden: npt.NDArray[np.float32]) -> None:
        """Remembers the hidden vector of the prompt's last token: asking the same again computes nothing."""
        turn.kv.keep_hidden(hidden)

    def end(self, turn: Turn, *, keep: bool) -> int:
        """Lets go of the turn's KV; `keep` makes it the conversation's state. Returns bytes queued for writing.

        A turn that sampled nothing moves no head; its sealed pages stay valid under their keys all the same.
        """
        self._cache.claims.release(turn.request.turn)
        log_reuse(self._cache.log, turn)
        for restore in filter(None, (turn.restore, turn.behind)):
            restore.cancel()
        turn.restore = turn.behind = None
        if turn.sequence is None:
            return 0
        started = now_ms()
        if keep:
            self._cache.save(turn.request.conversation, turn.sequence)
            self._cache.losses.doubts.answered(turn.request.turn, turn.request.conversation, turn.sequence.pages)
        else:
            turn.sequence.bytes_queued += self._cache.anchor(turn.sequence)
        written = turn.sequence.bytes_queued
        turn.sequence.release()
        turn.clock.save = now_ms() - started
        return written

    def _check_fit(self, turn: Turn) -> None:
        self._cache.pool.check_holds(len(turn.prompt), self._cache.layout.page_tokens)
        over = len(turn.prompt) + 1 - self._context
        if over > 0:
            raise ContextOverflow(
                "The conversation does not fit the model's context.",
                f"It has {len(turn.prompt):,} tokens, {over:,} more than the {self._context:,} of the context allow.",
                "Remove a document, switch to passages, start a new conversation or choose a larger context.",
            )

    def _account(self, turn: Turn, match: PrefixMatch, failed: str, reused: int) -> None:
        """`failed`: why less than the match came back."""
        memory = min(match.memory_tokens, reused)
        turn.reused = split_reused(memory, reused - memory, turn.request.shared_tokens)
        gone = Gone(failed, time.time()) if failed else Gone(match.missing_reason or "not in cache", match.missing_at)
        turn.missing = why_missing(self._cache, turn.request, gone, reused)
        turn.logged = False
        self._emit(
            TurnRestored(
                turn.request.turn,
                turn.request.conversation,
                turn.reused,
                turn.clock.restore,
                self._rates.prefill_ms(reused),
            )
        )

    def _log_settled(self, turn: Turn) -> None:
        """Once nothing is being checked, or read behind damage, any more."""
        if turn.restore is None and turn.behind is None:
            log_reuse(self._cache.log, turn)
