"""How answers get their tokens: drawn from a step's logits, or in runs of several steps within one native call.

Between two steps Python runs with cold caches behind all of the weights. While nothing else is to be computed and
nobody asks for the engine, short steps therefore follow each other without it, with what is drafted behind each token.
Tokens, KV and what is told of them are those of single steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from engine.citation_limit import CitationLimit
from engine.drafts import SHORTEST_MATCH
from engine.limits import Limits
from engine.messages import Event, FinishReason, TokenDelta
from engine.parking import Planned
from engine.runner import RowRun, Runner
from engine.speculation import Speculation
from engine.turn import Phase, Turn
from kernels.native_program import Decoded, Draw

# Who asks for the engine waits for the step in progress, all others as long as this; text is shown 30 times a second.
RUN_MS = 33.0
MOST_TOKENS = 64  # of an answer in a run
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

    def may_run(self, planned: Planned) -> bool:
        """Whether further steps may follow the planned one in the same call. If not, it goes alone."""
        rows = sum(len(run.ids) for _, run in planned)
        cost = self._speculation.costs.of(rows)
        if not cost or 2 * cost > RUN_MS or not self._runner.can_decode(rows):
            return False
        return all(self._plain(turn, run) for turn, run in planned)

    def _plain(self, turn: Turn, run: RowRun) -> bool:
        """An answer, and not within a marker, where other tokens are struck from step to step."""
        if turn.phase is not Phase.DECODE:
            return False
        limit = self._limit_of(turn)
        if not limit:
            return True
        within = len(run.ids) > 1 and np.isin(run.ids[1:], limit.brackets).any()
        return not (within or limit.open(turn.answer.written))

    def run(self, planned: Planned) -> Decoded:
        """The planned step and those that follow it: each turn's next tokens, which are not taken yet."""
        lengths, rows = self._speculation.lengths(len(planned))
        draws = [self._draw(turn, run, lengths) for turn, run in planned]
        found = self._runner.decode([run for _, run in planned], draws, rows, RUN_MS)
        for (turn, _), tokens, tries in zip(planned, found.tokens, found.tries, strict=True):
            turn.undrafted = len(turn.generated) + len(tokens) if found.looked else -1
            turn.drafted += sum(one.drafted for one in tries)
            turn.accepted += sum(one.accepted for one in tries)
            self._speculation.tried(tries)
        return found

    def _draw(self, turn: Turn, run: RowRun, lengths: Ids) -> Draw:
        ends, struck = self._end_ids, _NONE
        if limit := self._limit_of(turn):
            ends, struck = self._end_ids_or_brackets, limit.struck("", turn.request.sampling.citations)
        ids, answer = turn.source.ids(turn.generated), len(turn.prompt)
        most = min(MOST_TOKENS, self._left(turn))
        most = max(len(run.ids), min(most, turn.kv.reserve_spare(most)))
        return Draw(turn.sampler, ids, answer, most, ends, struck, SHORTEST_MATCH, lengths, turn.draft_match)

    @cached_property
    def _end_ids(self) -> Ids:
        return np.array(sorted(self._limits.end_tokens), np.int32)

    @cached_property
    def _end_ids_or_brackets(self) -> Ids:
        assert self._citations is not None
        return np.union1d(self._end_ids, self._citations.brackets)
