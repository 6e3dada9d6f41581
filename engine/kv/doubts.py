"""Answers that were computed on memory which is found wrong only later: whoever reads them is told."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from engine.kv.keys import KEY_BYTES, Key
from engine.kv.tree import Node
from engine.messages import ConversationId, TurnId

_REMEMBERED = 256  # answers, of 16 bytes a page: 32 KB each where they are on 2,000 pages


class Answered(NamedTuple):
    """A turn that has ended (time.monotonic), and the keys of the pages that its last tokens were computed on."""

    turn: TurnId
    conversation: ConversationId
    pages: bytes
    ended: float

    def on(self, key: Key, place: int) -> bool:
        """Whether that is its page of that number."""
        return self.pages[place * KEY_BYTES : (place + 1) * KEY_BYTES] == key


class Doubts:
    """Engine thread only."""

    def __init__(self) -> None:
        self._answers: deque[Answered] = deque(maxlen=_REMEMBERED)
        self._found: list[Answered] = []

    def answered(self, turn: TurnId, conversation: ConversationId, pages: tuple[Node, ...]) -> None:
        self._answers.append(Answered(turn, conversation, b"".join(page.key for page in pages), time.monotonic()))

    def met(self, page: Node, right: float | None = None) -> None:
        """It is wrong, and was right at that moment (time.monotonic). None: as it was mapped or read, which checks it;
        nobody knows since when it is not."""
        page.buffer.doubted = True
        right, place = page.buffer.mapped_at if right is None else right, len(page.path()) - 1
        found = [one for one in self._answers if one.ended > right and one.on(page.key, place)]
        self._found += found
        for one in found:
            self._answers.remove(one)

    def take(self) -> list[Answered]:
        """Those since the last call."""
        found, self._found = self._found, []
        return found
