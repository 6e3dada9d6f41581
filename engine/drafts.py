"""Drafts for an answer: what followed when its last tokens stood in the conversation before (prompt lookup).

Answers about documents copy from documents, and the whole conversation, documents included, is in the turn's tokens.
Saxena 2023, https://github.com/apoorvumang/prompt-lookup-decoding, describes the idea.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SHORTEST_MATCH = 2
LONGEST_MATCH = 16
_ROOM = 512  # tokens that the copy of the conversation grows by


@dataclass(frozen=True)
class Draft:
    """`ids`: tokens that may follow; `match`: how many tokens before them were the same."""

    ids: tuple[int, ...] = ()
    match: int = 0


class DraftSource:
    """The tokens of one turn as an array that grows with the answer."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self._prompt = len(prompt)
        self._count = len(prompt)
        self._ids = np.empty(self._count + _ROOM, np.int32)
        self._ids[: self._count] = prompt

    def find(self, answer: Sequence[int], most: int) -> Draft:
        """At most `most` tokens behind the latest of the longest matches with the end of prompt and `answer`."""
        self._take(answer)
        ids = self._ids[: self._count]
        if most < 1 or len(ids) <= SHORTEST_MATCH:
            return Draft()
        ends, length = np.flatnonzero(ids[:-1] == ids[-1]), 1
        while len(ends) and length < LONGEST_MATCH:
            longer = ends[ends >= length]
            longer = longer[ids[longer - length] == ids[-1 - length]]
            if not len(longer):
                break
            ends, length = longer, length + 1
        if length < SHORTEST_MATCH or not len(ends):
            return Draft()
        start = int(ends[-1]) + 1
        return Draft(tuple(ids[start : start + most].tolist()), length)

    def _take(self, answer: Sequence[int]) -> None:
        fresh = answer[self._count - self._prompt :]
        if self._count + len(fresh) > len(self._ids):
            self._ids = np.concatenate((self._ids, np.empty(_ROOM + len(fresh), np.int32)))
        self._ids[self._count : self._count + len(fresh)] = fresh
        self._count += len(fresh)
