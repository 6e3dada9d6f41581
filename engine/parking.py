"""The step that was parked for others, between two units of a phase: others take turns with it until it ends.

A long slice of prefill is parked when a command arrives that the reader waits for; its hidden vectors are kept.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.limits import SLICE_MS
from engine.runner import RowRun, Runner
from engine.timings import now_ms
from engine.turn import Phase, Turn
from kernels.program import StepResult

Planned = list[tuple[Turn, RowRun]]


class Parking:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._parked: Planned = []
        self._spent = 0.0  # milliseconds that the parked step took so far
        self._others = False  # they had the last step

    def holds(self, turn: Turn) -> bool:
        """Its rows are part of the parked step: nothing else may be computed for it."""
        return bool(self._parked) and any(turn is held for held, _ in self._parked)

    @property
    def empty(self) -> bool:
        return not self._parked

    @property
    def answering(self) -> bool:
        """The next token of an answer waits in it."""
        return any(held.phase is Phase.DECODE for held, _ in self._parked)

    def choose(self, plan: Callable[[], Planned]) -> Planned:
        """What `plan` finds for others, or the parked step: by turns."""
        planned = [] if self._parked and self._others else plan()
        self._others = bool(planned)
        return planned or self._parked

    def run(self, planned: Planned, *, beside: bool) -> tuple[StepResult, float]:
        """Runs or resumes a step; with its milliseconds in all. `beside`: others want to go on soon."""
        runs, started = [run for _, run in planned], now_ms()
        resumed = planned is self._parked
        if resumed:
            result = self._runner.resume(runs, SLICE_MS if beside else 0.0)
        else:
            result = self._runner.step(runs, parkable=True)
        spent = now_ms() - started + (self._spent if resumed else 0.0)
        if resumed or result.parked:
            self._parked, self._spent = (planned, spent) if result.parked else ([], 0.0)
            self._others = False
        return result, spent

    def let_go(self, turn: Turn) -> None:
        """The turn ends: a step with rows of it is not resumed."""
        if self.holds(turn):
            self._runner.drop()
            self._parked = []
