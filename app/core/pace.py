"""Work behind answers: while one is being written, each stretch of it is followed by a pause in proportion."""

from __future__ import annotations

import time
from collections.abc import Callable

PAUSE = 3.6  # for each second of work: the answer keeps three quarters of its rate, the import a fifth of its own
LONGEST_S = 8.0  # after a stretch that took much longer than its share
LEAST_S = 0.01  # of work, before it is worth a pause
POLL_S = 0.05


class Pace:
    """Of one job, on its thread. `answering`: an answer is being written; `stopped`: no pause any more."""

    def __init__(self, answering: Callable[[], bool], stopped: Callable[[], bool]) -> None:
        self._answering = answering
        self._stopped = stopped
        self._resumed = time.monotonic()

    def rest(self) -> None:
        """Between two pieces of the work."""
        worked = (now := time.monotonic()) - self._resumed
        if worked < LEAST_S:
            return
        until = now + min(LONGEST_S, PAUSE * worked)
        while (left := until - time.monotonic()) > 0 and self._answering() and not self._stopped():
            time.sleep(min(POLL_S, left))
        self._resumed = time.monotonic()
