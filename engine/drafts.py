"""Drafts for an answer: what followed when its last tokens stood in the conversation before (prompt lookup).

Answers about documents copy from documents, and the whole conversation, documents included, is in the turn's tokens.
Saxena 2023, https://github.com/apoorvumang/prompt-lookup-decoding, describes the idea.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from kernels.native_program import native_module

SHORTEST_MATCH = 2
LONGEST_MATCH = 16


@dataclass(frozen=True)
class Draft:
    """`ids`: tokens that may follow; `match`: how many tokens before them were the same."""

    ids: tuple[int, ...] = ()
    match: int = 0


NO_DRAFT = Draft()


class DraftSource:
    """The tokens of one turn as an array that grows with the answer."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self._prompt = len(prompt)
        self._ids = array("i", prompt)

    def ids(self, answer: Sequence[int]) -> array[int]:
        """Prompt and `answer`, as C's int."""
        self._ids.extend(answer[len(self._ids) - self._prompt :])
        return self._ids

    def find(self, answer: Sequence[int], most: int) -> Draft:
        """At most `most` tokens behind the latest of the longest matches with the end of prompt and `answer`."""
        self.ids(answer)
        if most < 1:
            return NO_DRAFT
        end, length = native_module().latest_match(self._ids, SHORTEST_MATCH, LONGEST_MATCH)
        return Draft(tuple(self._ids[end : end + most]), length) if length else NO_DRAFT
