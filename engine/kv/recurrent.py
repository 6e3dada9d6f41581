"""Recurrent layers: their state after a prefix, kept as snapshots under the prefix's key, in memory and on disk.

A recurrent layer has no rows per token: its state is overwritten by every step, so a sequence can only go on where a
snapshot was taken. Steps end at page borders and anchors (`steps`), snapshots are taken at anchors; going back takes
the nearest snapshot and replays from there. A backend that has such layers implements `LayerState`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskTier, StateRequest
from engine.kv.keys import Ids, Key, Roles, arrays, page_key, state_key
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from engine.models.spec import ModelSpec

Bytes = npt.NDArray[np.uint8]
ALIGNMENT = 64


@dataclass(frozen=True)
class StateLayout:
    """`ranges`: (start, stop) of each recurrent layer's float32 state in a snapshot of `bytes` bytes."""

    layers: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...]
    bytes: int

    @staticmethod
    def for_spec(spec: ModelSpec) -> StateLayout:
        """Of the model's recurrent layers; none of them: a snapshot of 0 bytes."""
        found = [(layer.index, r) for layer in spec.layers if (r := layer.attention.recurrent) is not None]
        ranges, position = list[tuple[int, int]](), 0
        for _, recurrent in found:
            ranges.append((position, position + recurrent.state_bytes))
            position = -(-ranges[-1][1] // ALIGNMENT) * ALIGNMENT
        return StateLayout(tuple(index for index, _ in found), tuple(ranges), position)


class LayerState(Protocol):
    """The running state of one sequence's recurrent layers, wherever a backend keeps it."""

    def save(self) -> Bytes:
        """A copy, uint8 [StateLayout.bytes]."""

    def load(self, state: Bytes | None) -> None:
        """Goes on from a copy; None: from before the first token."""


@dataclass(frozen=True)
class Snapshot:
    """The state after the `tokens` tokens that follow the page `parent` (all of a page, or some of them)."""

    key: Key
    parent: Key
    tokens: int
    state: Bytes


class Snapshots:
    """By key of the prefix; the least recently used leave memory when `budget_bytes` are exceeded. With `disk` they are
    written, and found again. Engine thread only.
    """

    def __init__(
        self, budget_bytes: int, layout: StateLayout, disk: DiskTier | None = None, numerics: str = ""
    ) -> None:
        self._budget = budget_bytes
        self._disk = disk
        self._numerics = numerics
        self._stops = tuple(stop for _, stop in layout.ranges)
        self._by_key: dict[Key, Snapshot] = {}
        self._by_parent: dict[Key, set[Key]] = {}
        self.bytes = 0

    def take(self, snapshot: Snapshot, start: int, ids: Ids, roles: Roles) -> None:
        """Keeps a new one, of the state after `ids` from position `start` on."""
        new = snapshot.key not in self._by_key
        self.put(snapshot)
        if self._disk is not None and new:
            key, parent = state_key(snapshot.key), snapshot.parent
            self._disk.write_state(
                StateRequest(key, parent, start, ids, roles, snapshot.state, self._stops, self._numerics)
            )

    def put(self, snapshot: Snapshot) -> None:
        self._drop(snapshot.key)
        self._by_key[snapshot.key] = snapshot
        self._by_parent.setdefault(snapshot.parent, set()).add(snapshot.key)
        self.bytes += snapshot.state.nbytes
        while self.bytes > self._budget:
            self._drop(next(iter(self._by_key)))

    def find(self, parent: Key, tokens: Tokens) -> Snapshot | None:
        """The one furthest behind `parent` on the way through `tokens`; it counts as used."""
        ids, roles = arrays(tokens)
        on_the_way = [
            snapshot
            for snapshot in map(self._by_key.__getitem__, self._by_parent.get(parent, ()))
            if snapshot.tokens <= len(tokens)
            and page_key(parent, ids[: snapshot.tokens], roles[: snapshot.tokens]) == snapshot.key
        ]
        best = max(on_the_way, key=lambda snapshot: snapshot.tokens, default=None)
        best = self._on_disk(parent, ids, roles, best.tokens if best else 0) or best
        if best is not None:
            self.put(best)
        return best

    def _on_disk(self, parent: Key, ids: Ids, roles: Roles, more_than: int) -> Snapshot | None:
        """The furthest one on disk, if it goes further than that."""
        records = self._disk.states(parent) if self._disk else []
        for record in sorted(records, key=lambda record: -record.tokens):
            count = record.tokens
            key = page_key(parent, ids[:count], roles[:count])
            if more_than < count <= len(ids) and state_key(key) == record.key and self._disk is not None:
                state = self._disk.read_state(record, ids[:count], roles[:count], self._numerics)
                if state is not None:
                    return Snapshot(key, parent, count, state)
        return None

    def _drop(self, key: Key) -> None:
        old = self._by_key.pop(key, None)
        if old is not None:
            self.bytes -= old.state.nbytes
            self._by_parent[old.parent].discard(key)
            if not self._by_parent[old.parent]:
                del self._by_parent[old.parent]


def steps(start: int, stop: int, page_tokens: int, anchors: Iterable[int]) -> list[tuple[int, int]]:
    """Cuts tokens [start, stop) into steps that end at page borders and at anchors, where snapshots may be taken."""
    borders = range(start - start % page_tokens + page_tokens, stop, page_tokens)
    ends = sorted({*borders, *(anchor for anchor in anchors if start < anchor < stop), stop})
    return list(zip([start, *ends], ends, strict=False)) if stop > start else []


def take_snapshot(snapshots: Snapshots, sequence: Sequence, state: LayerState) -> None:
    """Keeps the state after the sequence's last token under its key; nothing if that is none, moved or distrusted."""
    if not sequence.num_tokens or sequence.approximate or sequence.detached:
        return
    if sequence.tail_tokens:
        parent, (ids, roles) = sequence.last_key, sequence.tail()
    else:
        page = sequence.pages[-1]
        parent, ids, roles = page.parent_key, page.ids, page.roles
    snapshot = Snapshot(sequence.tail_key(), parent, len(ids), state.save())
    snapshots.take(snapshot, sequence.num_tokens - len(ids), ids, roles)


def rewind(snapshots: Snapshots, sequence: Sequence, tokens: int, state: LayerState) -> int:
    """Cuts the sequence to the nearest snapshot at or before `tokens` and loads it; tokens from there are replayed.

    Returns the position; 0 where there is no snapshot: the state then is that before the first token.
    """
    for start, parent, kept in _backwards(sequence, tokens):
        found = snapshots.find(parent, kept)
        if found is not None:
            position = start + found.tokens
            if sequence.keep_first(position) == position:
                state.load(found.state)
                return position
    sequence.keep_first(0)
    state.load(None)
    return 0


def _backwards(sequence: Sequence, tokens: int) -> Iterator[tuple[int, Key, Tokens]]:
    """(start, key before it, its tokens below `tokens`) of each page, the last one first."""
    size, whole = sequence.page_tokens, sequence.tokens
    pages = sequence.pages
    for index in reversed(range(-(-tokens // size))):
        parent = pages[index].parent_key if index < len(pages) else sequence.last_key
        stop = min(tokens, (index + 1) * size)
        yield index * size, parent, Tokens(whole.ids[index * size : stop], whole.roles[index * size : stop])
