"""What coming back to a conversation in memory costs: alone, and while another one computes its prompt."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.bench_driver import BenchEngine
from engine.messages import Tokens

IDLE, BUSY = 5, 32  # switches
_PARTS = 4  # of the other's prefill: a pause is as long as one of them, at most
_GOLDEN = 0.618  # multiples of it are all over [0, 1)


@dataclass(frozen=True)
class Visits:
    """To a conversation of `history` tokens. `text(count, seed)`: tokens for questions of `question` and for others."""

    engine: BenchEngine
    history: Tokens
    question: int
    text: Callable[[int, int], Tokens]

    def _visit(self, seed: int) -> float:
        """Milliseconds from the question until the state is ready."""
        prompt = self.history + self.text(self.question, seed)
        return self.engine.ask("main", prompt, 1, len(self.history)).restored_ms

    def idle(self) -> list[float]:
        found = []
        for number in range(IDLE):
            self.engine.ask("other", self.text(40, 20 + number), 1)
            time.sleep(0.3)
            found.append(self._visit(30 + number))
        return found

    def busy(self, other: int, seconds: float) -> list[float]:
        """At moments all over the steps of prompts of `other` tokens, each of which takes about so many seconds."""
        found = list[float]()
        while len(found) < BUSY:
            turn, _ = self.engine.send("other", self.text(other, 500 + len(found)), 1)
            self.engine.wait_progress(turn)
            while len(found) < BUSY and not self.engine.has_ended(turn):
                found.append(self._visit(100 + len(found)))
                time.sleep(seconds / _PARTS * (_GOLDEN * len(found) % 1))
            self.engine.cancel(turn)
        return found
