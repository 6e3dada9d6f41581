"""Documents read ahead: their prefix is computed when nothing else runs, so that every chat on them starts at once.

A document's prefix is the head of every prompt that begins with it: the fixed header and the whole document. Its
pages are shared by all conversations under their keys; a head of its own ("document:KEY") keeps them and the tail.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from engine.document_job import Job
from engine.elsewhere import Elsewhere, Go
from engine.errors import ContextOverflow, EngineError
from engine.kv.cache import KvCache
from engine.kv.disk import Handed
from engine.kv.sequence import Sequence
from engine.messages import (
    DocumentProgress,
    DocumentRead,
    DocumentStopped,
    Event,
    PrefillDocument,
    document_state,
)
from engine.runner import RowRun, Runner
from engine.timings import Rates, now_ms

_HAND_OVER_SECONDS = 0.5  # mostly it takes 2 ms; longer where the disk makes durable what was written before
# The step that runs is lost where somebody stops or kills it: a small part of a document, as far as that costs little.
# 2,000 tokens of the starter model in steps of 512, 256, 128 and 64: 100, 99, 92 and 79 % of the rate. With experts,
# which then have too few tokens each, 256 give 85 %: there the largest step is kept.
_STEPS, _LEAST_STEP = 16, 256
_WAIT_SHARE, _MOST_WAIT_SECONDS = 0.05, 0.02  # of a step, until the files hold what it computed: mostly at once
_LOOK_SECONDS = 0.005  # how often somebody who waits for that looks whether a turn came


class DocumentReader:
    """Engine thread only. `step` is called only while no turn waits or runs; `pause` before one starts."""

    def __init__(
        self, runner: Runner, cache: KvCache, rates: Rates, context: int, emit: Callable[[Event], None],
        experts: bool = False,
    ) -> None:  # fmt: skip
        """`experts`: the model has some."""
        self._experts = experts
        self._runner = runner
        self._cache = cache
        self._rates = rates
        self._context = context
        self._emit = emit
        self._elsewhere = Elsewhere(cache, rates)
        self._jobs: list[Job] = []

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def add(self, request: PrefillDocument) -> None:
        """Queues a document; one that is queued already is replaced and keeps its place."""
        known = [job for job in self._jobs if job.request.document == request.document]
        for job in known:
            self._let_go(job)
            self._jobs[self._jobs.index(job)] = Job(request)
        if not known:
            self._jobs.append(Job(request))

    def stop(self, document: str, why: str = "stopped") -> None:
        """Ends the reading; what was read stays. Nothing happens where the document is not queued."""
        for job in [job for job in self._jobs if job.request.document == document]:
            self._end(job, why)

    def stop_all(self, why: str = "stopped") -> None:
        for job in list(self._jobs):
            self._end(job, why)

    def pause(self) -> None:
        """Makes way: keeps what was read as the document's state, lets go of its memory."""
        for job in self._jobs:
            self._let_go(job)

    def step(self, slice_tokens: int) -> bool:
        """Works on the first document for one step; False when it has to wait for the disk."""
        job = self._jobs[0]
        try:
            return self._work(job, slice_tokens)
        except EngineError as error:
            self._end(job, f"{error.what} {error.why}")
            return True
        except Exception:  # a bug of ours: it would be met again and again
            if job in self._jobs:
                self._end(job, "The engine met an error of its own.")
            raise

    def _work(self, job: Job, slice_tokens: int) -> bool:
        if job.sequence is None and not self._brought_back(job):
            return False
        sequence = job.sequence
        assert sequence is not None
        self._cache.adopt(sequence, job.request.tokens)
        if sequence.num_tokens < (job.meets or job.total):
            go = self._elsewhere.look(job.waiting, sequence, job.request.tokens, job.owner)
            if go is Go.WAIT:
                return False
            if go is Go.READ and self._cache.match(job.request.tokens).tokens > sequence.num_tokens:
                self._look_again(job, sequence)
                return True
            if not self._compute(job, sequence, slice_tokens):
                return True  # somebody waits
        self._look(job, sequence)
        if job.meets and sequence.num_tokens >= job.meets:
            self._look_again(job, sequence)
        elif sequence.num_tokens == job.total:
            self._finish(job)
        elif job.kept >= 0:
            self._tell(job, sequence.num_tokens if job.not_saved else job.kept)
        return True

    def _look_again(self, job: Job, sequence: Sequence) -> None:
        """More has come to be there behind it."""
        self._cache.claims.release(job.owner)
        job.left, job.sequence = sequence.num_tokens, None
        sequence.release()

    def _brought_back(self, job: Job) -> bool:
        """Whether all that is computed already is in memory; starts reading it where it is not."""
        if job.restore is None:
            self._cache.pool.check_holds(job.total, self._cache.layout.page_tokens)
            if job.total > self._context:
                raise ContextOverflow(
                    "The document does not fit the model's context.",
                    f"It has {job.total:,} tokens, the context {self._context:,}.",
                )
            match = self._cache.match(job.request.tokens)
            job.restore, job.parted = self._cache.begin_restore(match), match.parted or job.parted
        if not job.restore.done():
            return False
        job.sequence, failed, job.restore = job.restore.take(), job.restore.failed, None
        if failed and self._more_is_there(job):
            job.sequence.release()
            job.sequence = None
            return False
        job.sequence.anchors = (job.parted,)
        if job.reused < 0 or job.left:
            job.reused = max(0, job.reused) + job.sequence.num_tokens - job.left
        job.left = 0
        behind = self._cache.matcher.beyond(job.sequence.pages, job.request.tokens)
        job.meets = behind[1] * job.sequence.page_tokens if behind else 0
        if not job.sequence.num_tokens:
            job.kept = max(job.kept, 0)
        job.hand_over(self._cache, job.sequence.num_tokens)
        return True

    def _more_is_there(self, job: Job) -> bool:
        """With sliding windows, of which those of an earlier place were not read, as long as it comes to more."""
        assert job.sequence is not None
        windows = bool(self._cache.layout.lookback)
        return windows and self._cache.match(job.request.tokens).tokens > job.sequence.num_tokens

    def _compute(self, job: Job, sequence: Sequence, slice_tokens: int) -> bool:
        """One step; False when it was stopped."""
        start = sequence.num_tokens
        fit = slice_tokens if self._experts else min(slice_tokens, max(_LEAST_STEP, job.total // _STEPS))
        end = min(job.meets or job.total, self._slice_end(start, fit))
        sequence.reserve(end - start)
        ids, roles = job.request.tokens.ids[start:end], job.request.tokens.roles[start:end]
        began = now_ms()
        done = self._runner.step([RowRun(sequence, ids, roles, start)]).completed
        if not done or not self._cache.losses.sound(sequence):
            return False
        self._rates.saw_step()
        job.step_ms = now_ms() - began
        job.milliseconds += job.step_ms
        self._rates.saw_prefill(len(ids), job.step_ms)
        before = sequence.bytes_queued
        sequence.commit(ids, roles)
        job.bytes_written += sequence.bytes_queued - before
        job.computed += len(ids)
        return True

    def _slice_end(self, start: int, slice_tokens: int) -> int:
        """Where a page ends, if one does within the slice: what is told as read is sealed then, so that a kill costs
        only what was not written yet."""
        size = self._cache.layout.page_tokens
        whole = (start + slice_tokens) // size * size
        return whole if whole > start else start + slice_tokens

    def _look(self, job: Job, sequence: Sequence) -> None:
        """What came of handing over what was computed: the disk is waited for a small part of the time that the step
        took."""
        pages = len(sequence.pages) * sequence.page_tokens
        if self._cache.disk is None:
            job.kept = pages
            return
        job.look(self._cache, 0.0)
        if job.handing is None:
            job.hand_over(self._cache, pages)
            job.look(self._cache, min(_MOST_WAIT_SECONDS, _WAIT_SHARE * job.step_ms / 1e3))

    def _tell(self, job: Job, done: int) -> None:
        """Told as read is what a kill of this process would not lose, unless it says that it is not saved."""
        left = (job.total - done) / self._rates.prefill if self._rates.prefill else 0.0
        request = job.request
        self._emit(
            DocumentProgress(
                request.document, request.label, done, job.total, max(0, job.reused),
                job.milliseconds / 1e3, left, job.bytes_written, job.not_saved,
            )
        )  # fmt: skip

    def _handed_over(self) -> Handed | None:
        """Waits a little until all that was read lies in the files, but not while somebody waits for a step."""
        handed = self._cache.disk.hand_over() if self._cache.disk else None
        until = time.monotonic() + _HAND_OVER_SECONDS
        while handed and not handed.wait(_LOOK_SECONDS) and time.monotonic() < until:
            if self._runner.cancel[0]:
                break
        return handed

    def _finish(self, job: Job) -> None:
        self._let_go(job)
        handed = self._handed_over()
        known = handed is None or handed.wait()
        if self._cache.disk and handed and known:
            job.not_saved = "" if handed.written else self._cache.disk.refused()
        self._tell(job, job.total if known or job.not_saved else max(0, job.kept))
        if not known and self._runner.cancel[0]:
            return  # a turn came: the end is told behind it
        self._jobs.remove(job)
        request = job.request
        self._emit(
            DocumentRead(
                request.document, request.label, job.total, job.computed, job.milliseconds / 1e3, job.bytes_written
            )
        )

    def _end(self, job: Job, why: str) -> None:
        self._let_go(job)
        self._handed_over()
        self._jobs.remove(job)
        self._emit(DocumentStopped(job.request.document, job.request.label, job.there, job.total, why))

    def _let_go(self, job: Job) -> None:
        self._cache.claims.release(job.owner)
        job.waiting.pause()
        job.meets = job.left = 0
        if job.restore is not None:
            job.restore.cancel()
            job.restore = None
        if job.sequence is not None:
            if job.sequence.num_tokens:
                job.bytes_written += self._cache.save(document_state(job.request.document), job.sequence)
            job.there = job.sequence.num_tokens
            job.sequence.release()
            job.sequence = None
