"""Answers that were computed on memory which is found wrong only later: whoever reads them is told."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from engine.kv.keys import Key
from engine.kv.tree import Node
from engine.messages import ConversationId, TurnId

_REMEMBERED = 256  # answers; those of a long conversation take some kilobytes each


class Answered(NamedTuple):
    """A turn that has ended (time.monotonic), and the pages that its last tokens were computed on."""

    turn: TurnId
    conversation: ConversationId
    pages: frozenset[Key]
    ended: float


class Doubts:
    """Engine thread only."""

    def __init__(self) -> None:
        self._answers: deque[Answered] = deque(maxlen=_REMEMBERED)
        self._found: list[Answered] = []

    def answered(self, turn: TurnId, conversation: ConversationId, pages: tuple[Node, ...]) -> None:
        self._answers.append(Answered(turn, conversation, frozenset(page.key for page in pages), time.monotonic()))

    def met(self, page: Node) -> None:
        """It is wrong, nobody knows since when: it was right when it was last checked, as it was mapped or read."""
        page.buffer.doubted = True
        checked = page.buffer.mapped_at
        found = [one for one in self._answers if page.key in one.pages and one.ended > checked]
        self._found += found
        for one in found:
            self._answers.remove(one)

    def take(self) -> list[Answered]:
        """Those since the last call."""
        found, self._found = self._found, []
        return found
