"""What the reader should know of the state that is kept, and how what was lost piece by piece is told in one notice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

NOT_SAVED = "Conversations are not being saved to disk at the moment."
MOST_NAMED = 6
Stretch = tuple[int, int]  # [start, stop) of tokens


@dataclass(frozen=True)
class Notice:
    """Something the reader should know; never a failure of a turn.

    `lost`: tokens that could not be used, of which `why` says nothing yet; `conversation`: whose; "": not known.
    """

    what: str
    why: str
    next: str
    lost: tuple[Stretch, ...] = ()
    conversation: str = ""

    def told(self, lost: Iterable[Stretch], conversation: str = "") -> Notice:
        """With these tokens in words."""
        return replace(self, why=f"{stretches_words(lost)}: {self.why}", lost=(), conversation=conversation)


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """In order, those that meet or overlap as one."""
    found: list[Stretch] = []
    for start, stop in sorted(stretches):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], stop)
        else:
            found.append((start, stop))
    return found


def stretches_words(stretches: Iterable[Stretch]) -> str:
    """`Tokens 128 to 255, 1,152 to 1,279 (256 in all)`"""
    found = joined(stretches)
    named = [f"{start:,} to {stop - 1:,}" for start, stop in found[:MOST_NAMED]]
    more = [f"{len(found) - MOST_NAMED:,} stretches more"] if len(found) > MOST_NAMED else []
    in_all = f" ({sum(stop - start for start, stop in found):,} in all)" if len(found) > 1 else ""
    return f"Tokens {', '.join(named + more)}{in_all}"
