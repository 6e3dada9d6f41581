"""Ways through the page tree that were gone before: where a conversation is unchanged since then, its pages need not be
hashed and looked up one by one again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kv.keys import Key

if TYPE_CHECKING:
    from engine.kv.tree import Node

_MOST = 16  # 5 bytes a token each


@dataclass(frozen=True)
class Walk:
    """Pages from the first one on, and their tokens: ids as int32 of this machine, roles as uint8."""

    pages: tuple[Node, ...]
    ids: bytes
    roles: bytes


class Walks:
    """The ones used last, by the key of their last page. All of a walk is in memory while its last page is."""

    def __init__(self) -> None:
        self._walks: dict[Key, Walk] = {}

    def keep(self, pages: Sequence[Node]) -> None:
        """Remembers a way. What was moved has other keys than its tokens say, and is left out."""
        if not pages or pages[-1].approximate:
            return
        known = self._walks.pop(pages[-1].key, None) or self._lengthened(pages)
        self._walks[pages[-1].key] = known
        if len(self._walks) > _MOST:
            del self._walks[next(iter(self._walks))]

    def along(self, ids: bytes, roles: bytes) -> Walk | None:
        """The longest one that these tokens begin with: the tokens decide, no key."""
        fit = (walk for walk in self._walks.values() if ids.startswith(walk.ids) and roles.startswith(walk.roles))
        return max(fit, key=lambda walk: len(walk.pages), default=None)

    def forget(self, last: Key) -> None:
        """Its last page is not in memory any more."""
        self._walks.pop(last, None)

    def _lengthened(self, pages: Sequence[Node]) -> Walk:
        begun, ids, roles = 0, b"", b""
        for number in range(len(pages) - 1, 0, -1):
            if walk := self._walks.get(pages[number - 1].key):
                begun, ids, roles = number, walk.ids, walk.roles
                break
        more = pages[begun:]
        ids += b"".join(page.ids.tobytes() for page in more)
        return Walk(tuple(pages), ids, roles + b"".join(page.roles.tobytes() for page in more))
