"""Reading a whole document in parts: which passages go together, and how the notes on them are brought together.

For questions that a few passages cannot answer ("summarise", "list all", "how many", "compare"). The plan is data:
whoever carries it out can stop after any part and go on later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rag.protocols import TokenCounter
from rag.types import Passage


@dataclass(frozen=True)
class Part:
    """Passages `first` to `last` (positions in the sequence planned for, both included), read in one go.

    Attributes:
        title: heading they have in common.
        tokens: what they take.
    """

    title: str
    first: int
    last: int
    tokens: int


class Sized(Protocol):
    """What a plan has to know of a part."""

    @property
    def tokens(self) -> int: ...


PartT = TypeVar("PartT", bound=Sized, covariant=True)


@dataclass(frozen=True)
class ReadingPlan(Generic[PartT]):
    """Attributes:
    parts: in reading order; together they hold every passage once.
    rounds: how notes are joined: each round has groups of positions in the notes of the round before (the first:
        of the parts). The last round has one group. Empty when one part is all there is.
    """

    parts: tuple[PartT, ...]
    rounds: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def steps(self) -> int:
        """Answers to be generated."""
        return len(self.parts) + sum(len(groups) for groups in self.rounds)

    @property
    def tokens(self) -> int:
        """Tokens of the document that are read."""
        return sum(part.tokens for part in self.parts)


def reading_plan(passages: Sequence[Passage], budget: int, note: int, count: TokenCounter) -> ReadingPlan[Part]:
    """A plan in which no part and no group of notes is over the budget.

    Args:
        passages: of one document or chapter, in reading order.
        budget: tokens for the text of one step; a single passage that is longer is a part by itself.
        note: tokens a note on a part may take.
    """
    sizes = [count(passage.text) for passage in passages]
    headings = [tuple(passage.heading.split(" > ")) if passage.heading else () for passage in passages]
    spans = list(_packed(_split(headings, sizes, 0, len(passages), 0, budget), sizes, budget))
    parts = tuple(
        Part(" > ".join(_common(headings[first:end])), first, end - 1, sum(sizes[first:end])) for first, end in spans
    )
    return ReadingPlan(parts, tuple(_rounds(len(parts), max(2, budget // max(1, note)))))


Span = tuple[int, int]  # of passages: first, end


def _split(
    headings: Sequence[tuple[str, ...]], sizes: Sequence[int], first: int, end: int, depth: int, budget: int
) -> Iterator[Span]:
    """The span, or its sections of the next level while it is over the budget; passages where there are none."""
    if first == end:
        return
    if sum(sizes[first:end]) <= budget or end - first == 1:
        yield first, end
        return
    if all(len(heading) <= depth for heading in headings[first:end]):
        yield from ((n, n + 1) for n in range(first, end))
        return
    start = first
    for n in range(first + 1, end + 1):
        if n == end or headings[n][: depth + 1] != headings[start][: depth + 1]:
            yield from _split(headings, sizes, start, n, depth + 1, budget)
            start = n


def _packed(spans: Iterator[Span], sizes: Sequence[int], budget: int) -> Iterator[Span]:
    """Neighbours joined as long as they fit together."""
    held: Span | None = None
    for first, end in spans:
        if held is not None and sum(sizes[held[0] : end]) <= budget:
            held = (held[0], end)
            continue
        if held is not None:
            yield held
        held = (first, end)
    if held is not None:
        yield held


def _common(headings: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    shortest = min(headings, key=len)
    same = [all(heading[n] == shortest[n] for heading in headings) for n in range(len(shortest))]
    return shortest[: [*same, False].index(False)]


def _rounds(notes: int, group: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Groups of about equal size until one note is left."""
    while notes > 1:
        groups = -(-notes // group)
        borders = [round(n * notes / groups) for n in range(groups + 1)]
        yield tuple(tuple(range(borders[n], borders[n + 1])) for n in range(groups))
        notes = groups
