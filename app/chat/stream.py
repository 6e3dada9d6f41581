"""Blocks of a text that grows: what has settled is parsed once, only the tail again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.chat.markdown import Block, parse
from app.core.shown_numbers import as_numbers


@dataclass(frozen=True)
class Change:
    """Blocks from `first` on are new or different; `blocks` replaces all of them."""

    first: int
    blocks: tuple[Block, ...]


class BlockStream:
    """Feed it deltas; it says which blocks changed.

    Attributes:
        text: everything so far.
    """

    def __init__(self, text: str = "", markers: Iterable[int] | Mapping[int, int] = ()) -> None:
        self.text = text
        self._markers = as_numbers(markers)
        self._settled = 0
        self._offset = 0

    def append(self, delta: str) -> Change:
        self.text += delta
        return self.tail()

    def tail(self) -> Change:
        """Parses what is not settled; everything before the last block settles."""
        parsed = parse(self.text[self._offset :], self._markers)
        change = Change(self._settled, parsed.blocks)
        if len(parsed.blocks) > 1 and parsed.tail_start > 0:
            self._settled += len(parsed.blocks) - 1
            self._offset += parsed.tail_start
        return change
