"""Final hidden vectors of prompt ends, by the key of the prefix they end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.kv.keys import Key

Hidden = npt.NDArray[np.float32]


class HiddenCache:
    """Keeps the most recently used `limit` vectors (a few KB each)."""

    def __init__(self, limit: int = 512) -> None:
        self._limit = limit
        self._vectors: dict[Key, Hidden] = {}

    def put(self, key: Key, hidden: Hidden) -> None:
        self._vectors.pop(key, None)
        self._vectors[key] = hidden
        if len(self._vectors) > self._limit:
            del self._vectors[next(iter(self._vectors))]

    def get(self, key: Key) -> Hidden | None:
        hidden = self._vectors.get(key)
        if hidden is not None:
            self.put(key, hidden)
        return hidden

    def clear(self) -> None:
        self._vectors = {}

    @property
    def bytes(self) -> int:
        return sum(vector.nbytes for vector in self._vectors.values())
