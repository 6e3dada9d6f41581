"""The scheduler: decides what each step computes, and carries turns from waiting to done.

Each step takes the decode token of every running turn, drafts behind it, and one slice of prefill; where all that
runs are answers, several steps follow each other (decoding.py). The conversation the reader looks at goes first.
A page that another turn is computing right now is waited for, not computed twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Set
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.admission import Admission
from engine.citation_limit import CitationLimit
from engine.decoding import Decoding
from engine.errors import EngineError
from engine.limits import SHORT_PROMPT, Limits, prefill_slice
from engine.messages import (
    ConversationId,
    Event,
    FinishReason,
    TokenDelta,
    TurnId,
)
from engine.mishaps import explained
from engine.parking import Parking, Planned
from engine.row_runs import decode_run, prefill_run
from engine.runner import RowRun, Runner
from engine.speculation import Speculation
from engine.timings import Rates
from engine.turn import Phase, Turn

MAX_RUNNING = 16
Floats = npt.NDArray[np.float32]


class Scheduler:
    """Owns the turns. Lives on the engine thread; `emit` hands events out.

    Attributes:
        focus: the conversation the reader looks at.
    """

    def __init__(
        self,
        runner: Runner,
        admission: Admission,
        rates: Rates,
        limits: Limits,
        emit: Callable[[Event], None],
        citations: CitationLimit | None = None,
        speculation: Speculation | None = None,
    ) -> None:
        self._runner = runner
        self._parking = Parking(runner)
        self._admission = admission
        self._rates = rates
        self._limits = limits
        self._emit = emit
        self._speculation = speculation or Speculation(limits.end_tokens, limits.context, on=False)
        self._decoding = Decoding(runner, limits, self._speculation, citations, emit)
        self._turns: dict[TurnId, Turn] = {}
        self.focus: ConversationId | None = None
        self._apart = False  # the last step was a short prompt's alone

    def submit(self, turn: Turn) -> None:
        self._turns[turn.request.turn] = turn
        self._admission.queued(turn, ahead=self.waiting - 1)

    def cancel(self, turn_id: TurnId) -> None:
        if turn := self._turns.get(turn_id):
            self._finish(turn, "cancelled")

    def fail_all(self, error: EngineError) -> None:
        """After a bug: every turn ends and says so, whatever state it is in."""
        for turn in list(self._turns.values()):
            try:
                self._fail(turn, error)
            except Exception:  # its pages are in doubt: they are left to the cache, the turn is let go
                self._remove(turn)
                self._emit(turn.failure(error))

    def cancel_all(self) -> None:
        for turn_id in list(self._turns):
            self.cancel(turn_id)

    def has_turn_of(self, conversation: ConversationId) -> bool:
        return any(turn.request.conversation == conversation for turn in self._turns.values())

    @property
    def running(self) -> int:
        return sum(turn.phase is not Phase.WAITING for turn in self._turns.values())

    @property
    def waiting(self) -> int:
        return len(self._turns) - self.running

    @property
    def busy(self) -> bool:
        return bool(self._turns)

    def wait(self, seconds: float) -> None:
        """Nothing to compute: until a restore is through, or that long."""
        restoring = next(iter(self._in_order(Phase.RESTORING)), None)
        self._admission.wait(restoring, self._alone, seconds) if restoring else time.sleep(seconds)

    def step(self) -> bool:
        """Admits what can start and runs one step. False when there was nothing to compute (yet)."""
        self._admit()
        sampled = self._sample_kept()
        runs = self._parking.choose(self._plan)
        if not runs:
            return sampled
        alone = len(runs) == len(self._turns) and self._parking.empty
        if alone and self._decoding.may_run(runs):
            self._decode(runs)
        else:
            self._compute(runs)
        return True

    @property
    def _alone(self) -> bool:
        return self.running == 1

    # --- choosing -----------------------------------------------------------------------------------

    def _in_order(self, phase: Phase) -> list[Turn]:
        """Turns of a phase: the focused conversation first, then by priority, then by age."""
        turns = [turn for turn in self._turns.values() if turn.phase is phase and not self._parking.holds(turn)]
        if len(turns) > 1:
            turns.sort(key=lambda turn: (not self._focused(turn), not turn.request.priority))
        return turns

    def _focused(self, turn: Turn) -> bool:
        return turn.request.conversation == self.focus

    def _admit(self) -> None:
        for turn in self._in_order(Phase.WAITING)[: max(0, MAX_RUNNING - self.running)]:
            self._guard(turn, partial(self._admission.begin, turn))
        for turn in self._in_order(Phase.RESTORING):
            self._guard(turn, partial(self._admission.poll, turn, self._alone))

    def _plan(self) -> Planned:
        planned: Planned = []
        reading = next((turn for turn in self._in_order(Phase.PREFILL) if self._admission.may_compute(turn)), None)
        self._apart = not self._apart and reading is not None and reading.unread <= SHORT_PROMPT
        decoding = [] if self._apart else self._in_order(Phase.DECODE)
        drafts = self._speculation.drafts(decoding, beside_prefill=bool(self._in_order(Phase.PREFILL)))
        for turn, draft in zip(decoding, drafts, strict=True):
            planned += self._guarded_run(turn, partial(decode_run, turn, draft))
        room = self.slice(decoding=bool(planned) or self._parking.answering)
        if reading is not None:
            planned += self._guarded_run(reading, partial(prefill_run, reading, room))
        return planned

    def _guarded_run(self, turn: Turn, make: Callable[[], RowRun]) -> Planned:
        made: Planned = []
        self._guard(turn, lambda: made.append((turn, make())))
        return made

    def _sample_kept(self) -> bool:
        """Turns whose prompt is cached to its end, hidden vector included, need no step for their first token."""
        sampled = False
        for turn in self._in_order(Phase.PREFILL):
            hidden = self._admission.kept_hidden(turn)
            if hidden is not None and self._admission.sound(turn):
                self._sample(turn, self._runner.head(hidden)[None], 0)
                sampled = True
        return sampled

    def slice(self, *, decoding: bool) -> int:
        """Prompt tokens for a step of the time that is fit: less beside running answers."""
        return prefill_slice(self._rates.prefill, self._limits.prefill_chunk, decoding=decoding)

    def _guard(self, turn: Turn, action: Callable[[], object]) -> None:
        """A turn that cannot go on fails alone, for a bug of ours too; the others are not touched."""
        try:
            action()
        except Exception as error:
            self._fail(turn, explained(error))

    # --- a step -------------------------------------------------------------------------------------

    def _compute(self, runs: Planned) -> None:
        result, spent = self._parking.run(runs, beside=self.running > len(runs))
        self._rates.saw_step()
        if result.completed:
            self._account(runs, spent)
            sound = {id(turn) for turn, _ in runs if self._admission.sound(turn)}
            self._apply(runs, sound, result.logits, result.hidden, spent)

    def _decode(self, runs: Planned) -> None:
        """Several steps, with nothing in between."""
        found = self._decoding.run(runs)
        self._rates.saw_step()
        self._charge(runs, sum(found.milliseconds))
        for rows, ms in zip(found.rows, found.milliseconds, strict=True):
            self._speculation.costs.saw(rows, ms)
        self._rates.saw_decode(sum(map(len, found.tokens)) / len(runs), sum(found.milliseconds))
        for (turn, run), tokens in zip(runs, found.tokens, strict=True):
            if not self._admission.sound(turn):
                self._emit(turn.progress(self._rates.prefill))
            elif tokens:
                self._take(turn, run, tokens)

    def _take(self, turn: Turn, run: RowRun, tokens: list[int]) -> None:
        """What was computed behind the answer's end is never committed."""
        taken, reason = self._decoding.take(turn, tokens)
        turn.kv.commit((run.ids[0], *tokens)[:taken], run.roles[:1] * taken)
        if reason:
            self._finish(turn, reason)

    def _account(self, runs: Iterable[tuple[Turn, RowRun]], ms: float) -> None:
        """Before what was computed is applied, which may end turns."""
        self._charge(runs, ms)
        prompt = sum(len(run.ids) for turn, run in runs if turn.phase is Phase.PREFILL)
        self._rates.saw_prefill(prompt, ms)
        if not prompt:
            self._speculation.costs.saw(sum(len(run.ids) for _, run in runs), ms)

    def _charge(self, runs: Iterable[tuple[Turn, RowRun]], ms: float) -> None:
        """Alike to all turns of a step."""
        for turn, _ in runs:
            if turn.phase is Phase.PREFILL:
                turn.clock.prefill += ms
            else:
                turn.clock.decode += ms

    def _apply(self, runs: Planned, sound: Set[int], logits: Floats, hidden: Floats, ms: float) -> None:
        row, sampled = 0, []
        for turn, run in runs:
            if id(turn) not in sound:
                self._emit(turn.progress(self._rates.prefill))
            elif turn.phase is Phase.PREFILL:
                self._after_prefill(turn, run, row, logits, hidden, ms)
            else:
                sampled.append(self._verify(turn, run, row, logits))
            row += run.outputs
        if len(sampled) == len(runs):
            self._rates.saw_decode(sum(sampled) / len(sampled), ms)

    def _after_prefill(self, turn: Turn, run: RowRun, row: int, logits: Floats, hidden: Floats, ms: float) -> None:
        if run.write:
            turn.kv.commit(run.ids, run.roles)
        turn.fed += len(run.ids)
        self._emit(self._admission.handing.progress(turn, self._rates.prefill, ms, beside=self.running > 1))
        if run.outputs:
            self._admission.keep_prompt_end(turn, hidden[row])
            self._sample(turn, logits, row)
        elif turn.generated and turn.kv.num_tokens == len(turn.wanted):
            turn.phase = Phase.DECODE

    def _verify(self, turn: Turn, run: RowRun, row: int, logits: Floats) -> int:
        """Samples row by row as if each were a step of its own, up to the first draft that differs: what is behind it
        is never committed. Returns the number of tokens sampled."""
        drafted = len(run.ids) - 1
        turn.drafted += drafted
        place = 0
        while True:
            turn.kv.commit(run.ids[place : place + 1], run.roles[place : place + 1])
            self._sample(turn, logits, row + place)
            if turn.phase is not Phase.DECODE or place == drafted or turn.generated[-1] != run.ids[place + 1]:
                break
            place += 1
            turn.accepted += 1
        self._speculation.judged(turn, drafted, place)
        return place + 1

    def _sample(self, turn: Turn, logits: Floats, row: int) -> None:
        token = self._decoding.draw(turn, logits, row)
        if not turn.generated:
            turn.clock.sampled_first()
            turn.phase = Phase.DECODE
        _, reason = self._decoding.take(turn, (token,))
        if reason:
            self._finish(turn, reason)

    # --- ending -------------------------------------------------------------------------------------

    def _finish(self, turn: Turn, reason: FinishReason) -> None:
        if rest := turn.answer.finish():
            self._emit(TokenDelta(turn.request.turn, turn.request.conversation, rest, ()))
        turn.note_doubt()
        written = self._admission.end(turn, keep=bool(turn.generated))
        self._remove(turn)
        self._emit(turn.finished(reason, written))

    def _fail(self, turn: Turn, error: EngineError) -> None:
        self._admission.end(turn, keep=bool(turn.generated))
        self._remove(turn)
        self._emit(turn.failure(error))

    def _remove(self, turn: Turn) -> None:
        turn.phase = Phase.DONE
        self._parking.let_go(turn)
        self._turns.pop(turn.request.turn, None)
