"""How answers get their tokens: drawn from a step's logits, or in runs of several steps within one native call.

Between two steps Python runs with cold caches behind all of the weights. While nothing else is to be computed and
nobody asks for the engine, short steps therefore follow each other without it. Tokens, KV and what is told of them are
those of single steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.citation_limit import CitationLimit
from engine.drafts import LONGEST_MATCH, SHORTEST_MATCH
from engine.kv.pool import KvMemoryFull
from engine.limits import Limits
from engine.messages import Event, FinishReason, TokenDelta
from engine.parking import Planned
from engine.runner import Runner
from engine.speculation import Speculation
from engine.turn import Phase, Turn
from kernels.native_program import Decoded, Draw

# Who asks for the engine waits for the step in progress, all others as long as this; text is shown 30 times a second.
RUN_MS = 33.0
MOST_STEPS = 32
Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]
_NONE: Ids = np.zeros(0, np.int32)


class Decoding:
    """Engine thread only; `emit` hands events out."""

    def __init__(
        self, runner: Runner, limits: Limits, speculation: Speculation, citations: CitationLimit | None,
        emit: Callable[[Event], None],
    ) -> None:  # fmt: skip
        self._runner = runner
        self._limits = limits
        self._speculation = speculation
        self._citations = citations
        self._emit = emit

    # --- one token ----------------------------------------------------------------------------------

    def draw(self, turn: Turn, logits: Floats, row: int) -> int:
        """The turn's next token by a row of logits [R, vocabulary]."""
        if limit := self._limit_of(turn):
            citations = turn.request.sampling.citations
            logits, row = limit.limited(logits[row], turn.answer.written, citations)[None], 0
        return turn.sampler.pick(logits, row, turn.generated, turn.position)

    def take(self, turn: Turn, tokens: Sequence[int]) -> tuple[int, FinishReason | None]:
        """Adds drawn tokens to the answer and tells of each by itself: how many come at once is chance. Returns how
        many, and why it ends behind the last."""
        for taken, token in enumerate(tokens, 1):
            turn.generated.append(token)
            ended = token in self._limits.end_tokens
            text = "" if ended else turn.answer.push(token)
            self._emit(TokenDelta(turn.request.turn, turn.request.conversation, text, (token,)))
            if reason := self._reason(turn, ended):
                return taken, reason
        return len(tokens), None

    def _reason(self, turn: Turn, ended: bool) -> FinishReason | None:
        if ended:
            return "stop"
        if turn.answer.stopped:
            return "stop_string"
        return None if self._left(turn) else "length" if self._wanted(turn) <= 0 else "context"

    def _wanted(self, turn: Turn) -> int:
        return turn.request.sampling.max_tokens - len(turn.generated)

    def _left(self, turn: Turn) -> int:
        """How many tokens the answer may still have."""
        return max(0, min(self._wanted(turn), self._limits.context - turn.position))

    def _limit_of(self, turn: Turn) -> CitationLimit | None:
        return self._citations if turn.request.sampling.citations else None

    # --- several steps ------------------------------------------------------------------------------

    def steps(self, planned: Planned) -> int:
        """How many steps may follow each other with the one that is planned as the first; 1: it goes alone."""
        cost = self._speculation.costs.of(len(planned))
        if not cost or 2 * cost > RUN_MS or not self._runner.can_decode(len(planned)):
            return 1
        if not all(self._plain(turn) and len(run.ids) == 1 for turn, run in planned):
            return 1
        steps = min(MOST_STEPS, *(self._left(turn) for turn, _ in planned))
        return steps if self._reserved(planned, steps) else 1

    def _plain(self, turn: Turn) -> bool:
        """An answer, and not within a marker, where other tokens are struck from step to step."""
        limit = self._limit_of(turn)
        return turn.phase is Phase.DECODE and not (limit and limit.open(turn.answer.written))

    def _reserved(self, planned: Planned, steps: int) -> bool:
        try:
            for turn, _ in planned:
                turn.kv.reserve(steps)
        except KvMemoryFull:
            return False
        return True

    def run(self, planned: Planned, steps: int) -> Decoded:
        """Up to so many steps: each turn's next tokens, which are not taken yet."""
        least = self._speculation.least_match(len(planned))
        draws = [self._draw(turn, least) for turn, _ in planned]
        found = self._runner.decode([run for _, run in planned], draws, steps, RUN_MS)
        self._speculation.passed(found.passed)
        for (turn, _), tokens in zip(planned, found.tokens, strict=True):
            turn.undrafted = len(turn.generated) + len(tokens) if found.looked else -1
        return found

    def _draw(self, turn: Turn, least_match: int) -> Draw:
        ends, struck = self._end_ids, _NONE
        if limit := self._limit_of(turn):
            ends, struck = self._end_ids_or_brackets, limit.struck("", turn.request.sampling.citations)
        ids, answer = turn.source.ids(turn.generated), len(turn.prompt)
        return Draw(turn.sampler, ids, answer, ends, struck, SHORTEST_MATCH, LONGEST_MATCH, least_match)

    @cached_property
    def _end_ids(self) -> Ids:
        return np.array(sorted(self._limits.end_tokens), np.int32)

    @cached_property
    def _end_ids_or_brackets(self) -> Ids:
        assert self._citations is not None
        return np.union1d(self._end_ids, self._citations.brackets)
