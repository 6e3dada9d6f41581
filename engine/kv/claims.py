"""Single-flight: who is computing which page right now."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from enum import Enum, auto

from engine.kv.disk import DiskTier
from engine.kv.keys import Key


class Claimed(Enum):
    HERE = auto()  # by this process, since before
    JUST_NOW = auto()  # by this process: another one may have computed the page until a moment ago
    ELSEWHERE = auto()


class Claims:
    """A page key has at most one owner; whoever else needs the page waits for it. `disk` shows it to other processes.

    Engine thread only.
    """

    def __init__(self, disk: DiskTier | None = None) -> None:
        self._disk = disk
        self._owners: dict[Key, Hashable] = {}
        self._shown: dict[Key, Hashable | None] = {}  # to other processes; None: computed, and not durable yet

    def claim(self, key: Key, owner: Hashable) -> bool:
        """True if `owner` has the key now."""
        return self._owners.setdefault(key, owner) == owner

    def owner_of(self, key: Key) -> Hashable | None:
        return self._owners.get(key)

    def show(self, keys: Sequence[Key], owner: Hashable) -> Claimed:
        """Claims pages that follow each other before other processes, up to one that is claimed elsewhere; tells of
        the first. Those of a step and more: whoever is ahead stays ahead."""
        before = keys[0] in self._shown
        for key in keys if self._disk else ():
            if key not in self._shown and self._disk and not self._disk.claim(key):
                break
            self._shown[key] = owner
        if before or not self._disk:
            return Claimed.HERE
        return Claimed.JUST_NOW if keys[0] in self._shown else Claimed.ELSEWHERE

    def settle(self, key: Key) -> None:
        """The page is computed. Others find it once it is durable."""
        self._owners.pop(key, None)
        if key in self._shown:
            self._shown[key] = None

    def stored(self, key: Key) -> None:
        """It is durable, or will not be."""
        if self._disk and self._shown.get(key, key) is None:
            del self._shown[key]
            self._disk.unclaim(key)

    def release(self, owner: Hashable) -> None:
        """The owner gives up everything it claimed (its turn ended or waits)."""
        for key in [key for key, holder in self._owners.items() if holder == owner]:
            del self._owners[key]
        for key in [key for key, holder in self._shown.items() if holder == owner]:
            del self._shown[key]
            if self._disk:
                self._disk.unclaim(key)
