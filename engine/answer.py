"""The text of an answer as it grows: whole characters only, cut at stop strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Protocol


class TextSource(Protocol):
    """A streaming detokeniser: holds bytes back until they form whole UTF-8 characters."""

    def push(self, token: int) -> str: ...

    def flush(self) -> str: ...


class Resumable(TextSource, Protocol):
    def resume(self, token_ids: Iterable[int], /) -> None: ...


class LateSource:
    """A text source that is made when it is needed first: a turn that comes is to be computed before anything else.

    It goes on behind the tokens that `behind` gives, which were shown already.
    """

    def __init__(self, make: Callable[[], Resumable], behind: Callable[[], Iterable[int]]) -> None:
        self._make, self._behind = make, behind

    def push(self, token: int) -> str:
        return self._source.push(token)

    def flush(self) -> str:
        return self._source.flush()

    @cached_property
    def _source(self) -> TextSource:
        made = self._make()
        made.resume(self._behind())
        return made


class AnswerText:
    """Collects text token by token; what could still become a stop string is held back.

    Attributes:
        text: everything released so far.
        stopped: a stop string was met; it and what follows is not part of the text.
    """

    def __init__(self, source: TextSource, stop: Iterable[str]) -> None:
        self._source = source
        self._stop = tuple(word for word in stop if word)
        self._held = ""
        self.text = ""
        self.stopped = False

    @property
    def written(self) -> str:
        """Everything so far, what is held back included."""
        return self.text + self._held

    def push(self, token: int) -> str:
        """Adds a token; returns the text that may be shown now (may be empty)."""
        return self._add(self._source.push(token))

    def finish(self) -> str:
        """Releases what was held back; half a character at the end becomes U+FFFD."""
        shown = self._add(self._source.flush())
        if self.stopped:
            return shown
        held, self._held = self._held, ""
        self.text += held
        return shown + held

    def _add(self, piece: str) -> str:
        if self.stopped:
            return ""
        if not self._stop:
            self.text += piece
            return piece
        self._held += piece
        ready = self._first_stop()
        if ready is None:
            ready = len(self._held) - self._possible_start()
        else:
            self.stopped = True
        shown, self._held = self._held[:ready], self._held[ready:]
        self.text += shown
        return shown

    def _first_stop(self) -> int | None:
        places = [self._held.find(word) for word in self._stop]
        return min((place for place in places if place >= 0), default=None)

    def _possible_start(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        longest = max((len(word) for word in self._stop), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(word.startswith(self._held[-length:]) for word in self._stop):
                return length
        return 0
