"""What a page is worth: the seconds it saves when it is needed, times how likely that is, per byte it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

_WORTH = 0.8  # of the time of reading: what is nearly as fast is read, which costs no computing
_MEMORY_SECONDS = 60.0  # below this age all pages are about as likely to be used again
_DISK_SECONDS = 3600.0


@dataclass(frozen=True)
class Costs:
    """What computing and reading cost on this machine.

    Attributes:
        seconds_per_token: of computing the first tokens; depth_scale: position at which a token costs twice that.
        read_bytes_per_second: of a verified restore. read_measured, compute_measured: not just assumed.
    """

    seconds_per_token: float = 1e-3
    depth_scale: float = 4096.0
    read_bytes_per_second: float = 500e6
    compute_measured: bool = False
    read_measured: bool = False

    def compute(self, start: int, tokens: int) -> float:
        """Seconds to compute `tokens` tokens after `start` others: attention grows with what lies before."""
        return tokens * self.seconds_per_token * (1 + (start + tokens / 2) / self.depth_scale)

    def read(self, size: int) -> float:
        """Seconds to bring `size` bytes back from disk."""
        return size / self.read_bytes_per_second

    def front(self, start: int, tokens: int, size: int, step: int) -> int:
        """How many of the tokens, a multiple of `step` or all, are best computed while the rest is read (all: `size`).

        0: none, everything is read. Computing is cheapest at the front, reading costs the same anywhere.
        """
        if not (tokens and self.compute_measured and self.read_measured):
            return 0

        def seconds(front: int) -> float:
            return max(self.compute(start, front), self.read(size * (tokens - front) // tokens))

        best = min((*range(0, tokens, step), tokens), key=seconds)
        return best if seconds(best) < _WORTH * seconds(0) else 0

    def memory_value(self, start: int, tokens: int, size: int, saved: bool, age: float, uses: int) -> float:
        """Of a page in memory, last used `age` seconds ago; `saved`: it can also be read."""
        seconds = self.compute(start, tokens)
        if saved:
            seconds = min(seconds, self.read(size))
        return seconds * chance(age, uses, _MEMORY_SECONDS) / size

    def disk_value(self, start: int, tokens: int, size: int, age: float, uses: int) -> float:
        """Of a page on disk that `uses` conversations end at."""
        return self.compute(start, tokens) * chance(age, uses, _DISK_SECONDS) / max(1, size)


def chance(age: float, uses: int, scale: float) -> float:
    """How likely something is needed soon, up to a factor: inverse to its age, growing slowly with its uses."""
    return (1 + math.log2(max(1, uses))) / (max(0.0, age) + scale)


def depth_scale(parameters: int, attention_channels: int) -> float:
    """Position at which attention costs as much as the weights.

    `parameters`: weights that a token passes through (2 operations each); `attention_channels`: heads x head_dim
    summed over the layers (2 operations each for scores and for values, per position).
    """
    return max(1.0, 2 * parameters / max(1, 4 * attention_channels))
