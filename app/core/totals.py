"""Tokens and times of an answer that takes several engine turns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

from app.core.records import PhaseTimes, TokenReport, TurnReport
from engine.messages import ComputedRange, ReusedTokens, TurnFinished


@dataclass(frozen=True)
class TurnTotals:
    """Sums over turns; phases that are one turn's own (queue, first token) are left out. `doubtful`: one of them was
    written on state that was found damaged."""

    tokens: TokenReport = field(default_factory=TokenReport)
    times: PhaseTimes = field(default_factory=PhaseTimes)
    doubtful: bool = False

    @staticmethod
    def of(report: TurnReport | None) -> TurnTotals:
        """What an earlier run came to."""
        return TurnTotals() if report is None else TurnTotals(report.tokens, report.timings_ms, bool(report.doubtful))

    def with_turn(self, event: TurnFinished, read: int) -> TurnTotals:
        """`read`: prompt tokens that it computed so far; counted where it was stopped before it wrote anything."""
        computed, prompt = event.computed, event.prompt_tokens
        if event.reason == "cancelled" and not len(event.generated):
            computed, prompt = (ComputedRange(read, "new"),) if read else (), event.reused.total + read
        before, times = self.tokens, event.timings
        tokens = TokenReport(
            before.prompt + prompt,
            _added(before.reused, event.reused),
            _merged((*before.computed, *computed)),
            before.generated + len(event.generated),
            before.drafted + event.drafted,
            before.accepted + event.accepted,
        )
        phases = PhaseTimes(prefill=self.times.prefill + times.prefill, decode=self.times.decode + times.decode)
        return TurnTotals(tokens, phases, self.doubtful or bool(event.doubtful))


def _added(one: ReusedTokens, two: ReusedTokens) -> ReusedTokens:
    return ReusedTokens(*(getattr(one, part.name) + getattr(two, part.name) for part in fields(ReusedTokens)))


def _merged(ranges: tuple[ComputedRange, ...]) -> tuple[ComputedRange, ...]:
    counts: Counter[str] = Counter()
    for part in ranges:
        counts[part.reason] += part.tokens
    return tuple(ComputedRange(tokens, reason) for reason, tokens in counts.items())
