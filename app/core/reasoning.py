"""Reasoning in an answer's stream told from the answer, as it comes.

The engine puts it between <think> and </think>, whatever the model's own marks are (engine.chat_reasoning).
"""

from __future__ import annotations

from collections.abc import Iterator

from app.core.events import Part
from engine.chat_reasoning import CLOSE, OPEN

_TAGS: dict[str, Part] = {OPEN: "reasoning", CLOSE: "answer"}


class ReasoningSplit:
    """Feed it text; `active` False: the model does not reason, all of it is answer."""

    def __init__(self, active: bool) -> None:
        self._active = active
        self._part: Part = "answer"
        self._held = ""

    def feed(self, text: str) -> Iterator[tuple[Part, str]]:
        """Pieces in order, none empty; what may still become a tag is held back."""
        self._held += text
        while self._active and (found := self._next_tag()):
            place, tag = found
            yield from self._piece(self._held[:place])
            self._held = self._held[place + len(tag) :]
            self._part = _TAGS[tag]
        ready = len(self._held) - self._possible_start()
        yield from self._piece(self._held[:ready])
        self._held = self._held[ready:]

    def rest(self) -> Iterator[tuple[Part, str]]:
        """What was held back, at the end."""
        held, self._held = self._held, ""
        yield from self._piece(held)

    def _piece(self, text: str) -> Iterator[tuple[Part, str]]:
        if text:
            yield self._part, text

    def _next_tag(self) -> tuple[int, str] | None:
        places = [(self._held.find(tag), tag) for tag in _TAGS]
        return min((found for found in places if found[0] >= 0), default=None)

    def _possible_start(self) -> int:
        if not self._active:
            return 0
        longest = min(len(CLOSE) - 1, len(self._held))
        ends = (n for n in range(longest, 0, -1) if any(tag.startswith(self._held[-n:]) for tag in _TAGS))
        return next(ends, 0)


def split_answer(text: str, active: bool) -> tuple[str, str]:
    """(reasoning, answer) of a whole text."""
    split = ReasoningSplit(active)
    pieces = [*split.feed(text), *split.rest()]
    reasoning = "".join(piece for part, piece in pieces if part == "reasoning")
    return reasoning, "".join(piece for part, piece in pieces if part == "answer")
