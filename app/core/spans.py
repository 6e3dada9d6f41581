"""Where in a prompt the tokens lie that went through the model, and why each of them did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.messages import ComputedRange

NEW_WORK = frozenset({"new", "last sampled", "first token"})  # reasons of tokens that no earlier turn had computed


@dataclass(frozen=True)
class ComputedSpan:
    """Tokens [start, stop) of a prompt that went through the model, and why; `at`: see ComputedRange."""

    start: int
    stop: int
    reason: str
    at: float = 0.0


def placed(parts: Iterable[ComputedRange], gaps: Sequence[tuple[int, int]]) -> Iterator[ComputedSpan]:
    """The parts one after another in the gaps, [start, stop) each, ascending; a part that does not fit one goes on in
    the next."""
    free = list(reversed(gaps))
    for part in parts:
        left = part.tokens
        while left and free:
            start, end = free.pop()
            stop = min(end, start + left)
            yield ComputedSpan(start, stop, part.reason, part.at)
            left -= stop - start
            if stop < end:
                free.append((stop, end))


@dataclass(frozen=True)
class Operation:
    """A change of the history that a turn followed: `trim`, `take_out`, `fork`, `edit`, `undo`, `redo`; and `exact`:
    what had been moved up, or was to be, was not kept and is computed as it stands. `tokens`: that it was about, None
    where that was not counted; `milliseconds`: it took by itself, apart from what is read again."""

    name: str
    milliseconds: float
    tokens: int | None = None
