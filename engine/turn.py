"""One turn on the engine thread: its phase, its sequence, what it reused and what it computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property
from typing import NamedTuple

from engine.answer import AnswerText
from engine.drafts import DraftSource
from engine.elsewhere import Waiting
from engine.errors import EngineError
from engine.kv.disk import Handed
from engine.kv.prefix import PrefixMatch
from engine.kv.reasons import Missing, computed_ranges
from engine.kv.restore import Restore
from engine.kv.sequence import Sequence
from engine.messages import (
    ComputedRange,
    FinishReason,
    FirstDifference,
    PrefillProgress,
    Removal,
    ReusedTokens,
    Submit,
    Tokens,
    TurnFailed,
    TurnFinished,
)
from engine.timings import TurnClock
from kernels.sample.cpu import Sampler, sampler


class Span(NamedTuple):
    """Positions in a prompt."""

    start: int
    stop: int


class Phase(Enum):
    WAITING = auto()
    RESTORING = auto()
    PREFILL = auto()
    DECODE = auto()
    DONE = auto()


@dataclass
class Turn:
    """Owned by the scheduler. `sequence` is None until the turn was admitted."""

    request: Submit
    answer: AnswerText
    clock: TurnClock = field(default_factory=TurnClock)
    phase: Phase = Phase.WAITING
    sequence: Sequence | None = None
    restore: Restore | None = None
    match: PrefixMatch | None = None
    behind: Restore | None = None  # is read while what is before it is computed
    meets: int = 0  # at this position
    failed: str = ""  # what became of the page before it, if that could not be read
    waiting: Waiting = field(default_factory=Waiting)
    removing: Removal | None = None  # what `sequence` still holds more than the prompt
    approximate: bool | None = None  # None: its state has not come back
    fed: int = 0  # prompt tokens that went through the model
    reused: ReusedTokens = field(default_factory=ReusedTokens)
    found: list[Span] = field(default_factory=list)  # where that lies
    taken: list[Span] = field(default_factory=list)  # what was taken over from another turn after admission
    missing: Missing = field(default_factory=Missing)
    logged: bool = True  # what came back; False: that has changed since
    generated: list[int] = field(default_factory=list)
    bytes_read: int = 0
    handed: int = 0  # tokens that were handed to the files, and lie there
    handing: tuple[int, Handed] | None = None  # up to which token they were handed over last
    undrafted: int = -1  # behind so many tokens nothing is to be tried: it was looked for
    draft_match: int = 0  # of the draft in the step that runs
    drafted: int = 0
    accepted: int = 0
    doubtful: int = 0  # tokens of the answer that were drawn before damage below them was met

    @property
    def prompt(self) -> Tokens:
        return self.request.tokens

    @property
    def wanted(self) -> Tokens:
        """What its KV has to hold before the next token is sampled; more than the prompt where KV was lost since."""
        fed = self.generated[:-1]
        return self.prompt + Tokens.generated(fed) if fed else self.prompt

    @property
    def kv(self) -> Sequence:
        assert self.sequence is not None, "the turn was not admitted"
        return self.sequence

    @property
    def position(self) -> int:
        """Position of the next token to be sampled."""
        return len(self.request.tokens.ids) + len(self.generated)

    @property
    def unread(self) -> int:
        """Prompt tokens that have no KV yet."""
        return len(self.prompt) - self.kv.num_tokens

    @cached_property
    def sampler(self) -> Sampler:
        """Draws its tokens. Penalties look at the answer alone: the prompt's words are what it should use."""
        return sampler(self.request.sampling)

    @cached_property
    def source(self) -> DraftSource:
        """Its tokens, for drafts."""
        return DraftSource(self.prompt.ids)

    @property
    def reused_in_all(self) -> ReusedTokens:
        """What was found at admission, and what another turn computed for both meanwhile."""
        memory = self.reused.memory + covered(self.taken)
        return split_reused(memory, self.reused.disk, self.request.shared_tokens)

    def cut(self) -> int:
        """After its sequence was cut: returns how much of what was found is left; of what was taken over the rest
        does not count any more either, nor may any of what is left have been moved. What is computed in its place is
        handed to the files anew."""
        self.approximate = self.kv.approximate
        self.doubtful = len(self.generated) if self.kv.doubted else self.doubtful
        self.handed, self.handing = min(self.handed, self.kv.num_tokens), None
        self.found, self.taken = (_before(self.kv.num_tokens, spans) for spans in (self.found, self.taken))
        return covered(self.found)

    def note_doubt(self) -> None:
        """As it ends: damage may have been met under it that no step of its own has come to."""
        if self.sequence is not None and any(page.buffer.doubted for page in self.sequence.pages):
            self.doubtful = len(self.generated)

    def account(self) -> tuple[ComputedRange, ...]:
        """What went through the model for the prompt, with reasons; until it was stopped, where it was."""
        reused = self.reused_in_all.total
        if reused == len(self.prompt):
            return (ComputedRange(1, "first token"),) if self.fed else ()
        ranges = computed_ranges(self.request, self._between(), self.missing)
        return ranges if self.generated else tuple(_first(ranges, self.fed))

    def gaps(self) -> tuple[Span, ...]:
        """Where the prompt went through the model: before, between and behind what is reused."""
        gaps = self._between()
        return tuple(gaps if self.generated else _first_of(gaps, self.fed))

    def _between(self) -> list[Span]:
        there = sorted(span for span in (*self.found, *self.taken) if span.start < span.stop)
        starts = (0, *(span.stop for span in there))
        stops = (*(span.start for span in there), len(self.prompt))
        return [Span(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]

    def difference(self) -> FirstDifference | None:
        """Where the prompt leaves what this conversation had computed, if reuse ended for that and not before it."""
        found = self.match.difference if self.match and not self.removing else None
        reused = self.reused_in_all.total
        return found if found and found.position <= reused < self.request.history_tokens else None

    def reuse_ended(self) -> str | None:
        """Why, for the log: behind what this conversation had computed all is new. None: everything was reused."""
        if self.reused.total == len(self.prompt):
            return None
        if self.reused.total >= self.request.history_tokens and self.missing.reason not in ("edited", "not in cache"):
            return self.missing.reason
        reasons = (part.reason for part in computed_ranges(self.request, self._between(), self.missing))
        return next((reason for reason in reasons if reason != "last sampled"), "last sampled")

    def progress(self, tokens_per_second: float, kept: int | None = None) -> PrefillProgress:
        """`kept`: tokens that lie in the files; None: as was seen last."""
        request, reused, there = self.request, self.reused.total, self.kv.num_tokens
        total, done = max(1, len(self.wanted) - reused), max(0, there - reused)
        kept = max(0, (self.handed if kept is None else kept) - reused)
        return PrefillProgress(request.turn, request.conversation, done, total, tokens_per_second, min(done, kept))

    def failure(self, error: EngineError) -> TurnFailed:
        request = self.request
        return TurnFailed(request.turn, request.conversation, error.what, error.why, error.next)

    def finished(self, reason: FinishReason, bytes_written: int) -> TurnFinished:
        return TurnFinished(
            turn=self.request.turn,
            conversation=self.request.conversation,
            reason=reason,
            text=self.answer.text,
            generated=Tokens.generated(self.generated),
            prompt_tokens=len(self.prompt),
            reused=self.reused_in_all,
            computed=self.account(),
            timings=self.clock.report(),
            bytes_read=self.bytes_read,
            bytes_written=bytes_written,
            difference=self.difference(),
            approximate=self.approximate,
            drafted=self.drafted,
            accepted=self.accepted,
            gaps=self.gaps(),
            doubtful=self.doubtful,
        )


def covered(spans: list[Span]) -> int:
    return sum(stop - start for start, stop in spans)


def _first(ranges: Iterable[ComputedRange], tokens: int) -> Iterator[ComputedRange]:
    """The parts that make up so many tokens."""
    for part in ranges:
        if tokens > 0:
            yield replace(part, tokens=min(part.tokens, tokens))
        tokens -= part.tokens


def _first_of(gaps: Iterable[Span], tokens: int) -> Iterator[Span]:
    for start, stop in gaps:
        if tokens > 0:
            yield Span(start, min(stop, start + tokens))
        tokens -= stop - start


def _before(position: int, spans: list[Span]) -> list[Span]:
    return [Span(start, min(stop, position)) for start, stop in spans if start < position]


def split_reused(memory: int, disk: int, shared_tokens: int) -> ReusedTokens:
    """`shared_tokens` leading tokens belong to the header and the documents."""
    return ReusedTokens(memory, disk, of_which_shared=min(memory + disk, shared_tokens))
