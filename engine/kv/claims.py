"""Single-flight: who is computing which page right now."""

from __future__ import annotations

from collections.abc import Hashable

from engine.kv.keys import Key


class Claims:
    """A page key has at most one owner; whoever else needs the page waits for it."""

    def __init__(self) -> None:
        self._owners: dict[Key, Hashable] = {}

    def claim(self, key: Key, owner: Hashable) -> bool:
        """True if `owner` has the key now."""
        return self._owners.setdefault(key, owner) == owner

    def owner_of(self, key: Key) -> Hashable | None:
        return self._owners.get(key)

    def settle(self, key: Key) -> None:
        """The page is there: nobody computes it any more."""
        self._owners.pop(key, None)

    def release(self, owner: Hashable) -> None:
        """The owner gives up everything it claimed (its turn ended or waits)."""
        for key in [key for key, holder in self._owners.items() if holder == owner]:
            del self._owners[key]
