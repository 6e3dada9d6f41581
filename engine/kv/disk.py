"""What the cache asks of the disk tier. `engine.store.KvStore` is the implementation; conversations work
without one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.kv.keys import Ids, Key, Roles
from engine.kv.notices import Notice, Stretch
from engine.kv.value import Costs


class Location(NamedTuple):
    """Where one layer group of a page lies: a record of `length` bytes in a segment, payload at `offset + payload`."""

    segment: str
    offset: int
    length: int
    payload: int


class DiskRecord(NamedTuple):
    """A page or tail on disk. `start`: position of its first token. A tuple: a long prefix makes hundreds at once.

    `parts`: one per layer group of the layout; None where the group is not stored, or not wanted of a read.
    """

    key: Key
    parent: Key
    tail: bool
    start: int
    tokens: int
    numerics: str
    parts: tuple[Location | None, ...]

    @property
    def whole(self) -> bool:
        """All layer groups are there."""
        return None not in self.parts

    @property
    def place(self) -> Location:
        """Of its first record."""
        return self.parts[0] or next(part for part in self.parts if part)

    @property
    def stretch(self) -> Stretch:
        return self.start, self.start + self.tokens

    @property
    def bytes(self) -> int:
        return sum(part.length for part in self.parts if part)

    def without(self, groups: Collection[int]) -> DiskRecord:
        """The record, to be read without some of its layer groups."""
        if not any(self.parts[group] for group in groups):
            return self
        return self._replace(parts=tuple(None if i in groups else part for i, part in enumerate(self.parts)))


@dataclass(frozen=True)
class WriteRequest:
    """A sealed page, or a tail of `len(ids)` tokens; `payload` uint8 [page payload] in the page layout.

    The rows behind `ids` must not change until the request is done. `hidden`: float32 [channels] or None.
    `groups`: the layer groups to be written, None for all.
    """

    key: Key
    parent: Key
    tail: bool
    start: int
    ids: Ids
    roles: Roles
    payload: npt.NDArray[np.uint8]
    numerics: str
    conversation: str = ""
    hidden: npt.NDArray[np.float32] | None = None
    shifted: bool = False
    groups: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ReadRequest:
    """Read `record` into `payload` (page layout) if it is intact and holds exactly these ids and roles.

    `mapped`: the whole record where it lies in a mapping, `payload` a part of it: then it is populated, not copied.
    Layer groups of which the record has no part leave their bytes of `payload` as they are.
    """

    record: DiskRecord
    ids: Ids
    roles: Roles
    payload: npt.NDArray[np.uint8]
    mapped: npt.NDArray[np.uint8] | None = None


@dataclass(frozen=True)
class StateRequest:
    """A snapshot of recurrent layers after `ids`, which follow the page `parent` and begin at position `start`.

    `state`: uint8 [bytes], must not change; `stops`: where each layer's part ends, each begins at a multiple of 64.
    """

    key: Key
    parent: Key
    start: int
    ids: Ids
    roles: Roles
    state: npt.NDArray[np.uint8]
    stops: tuple[int, ...]
    numerics: str


@dataclass(frozen=True)
class StateRecord:
    """A snapshot on disk, of the state after `tokens` tokens behind the page `parent`."""

    key: Key
    parent: Key
    start: int
    tokens: int
    place: Location


@dataclass(frozen=True)
class Gone:
    """Why a page that was here is not (see messages.ComputedRange), and since when (unix time)."""

    reason: str
    at: float


@dataclass(frozen=True)
class Head:
    """Where a conversation ends: its last sealed page (or the root), and its tail if it has one.

    Attributes:
        tokens: all its tokens; saved: unix time; pinned: never evicted from disk.
    """

    conversation: str
    last: Key
    tail: Key | None
    tokens: int
    saved: float
    pinned: bool = False

    def renamed(self, conversation: str) -> Head:
        return replace(self, conversation=conversation)


class ReadTicket(Protocol):
    """A batch of reads in progress on an I/O thread.

    `outcome(i)`: "" when request i was read and verified, else why not ("damaged", "cancelled").
    `hidden(i)`: the final hidden vector kept with a tail, if any. `usable`: only mapped records are left to be checked.
    `seconds`: how long it took, once it is done; `ended`: when that was (time.perf_counter).
    """

    bytes_read: int
    seconds: float
    ended: float

    def done(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...
    def usable(self) -> bool: ...
    def wait_usable(self, timeout: float | None = None) -> bool: ...
    def cancel(self) -> None: ...
    def outcome(self, index: int) -> str: ...
    def hidden(self, index: int) -> npt.NDArray[np.float32] | None: ...


class Handed:
    """What came of handing writes over; told by the I/O thread, looked at by another.

    Attributes: written: none of what was written until then was refused; False until `wait` returns True.
    """

    def __init__(self) -> None:
        self.written = False
        self._told = threading.Event()

    def tell(self, written: bool) -> None:
        self.written = written
        self._told.set()

    def wait(self, timeout: float = 0.0) -> bool:
        """Whether it is known, after so many seconds at last."""
        return self._told.wait(timeout)


class DiskTier(Protocol):
    """Look-ups are quick and may come from any thread; `done` callbacks arrive on an I/O thread."""

    def refresh(self) -> bool:
        """Takes over what other processes wrote since; whether there was something."""

    def taken_out(self) -> list[Key]:
        """Keys whose records anybody removed since the last call, as far as `refresh` knows."""

    def intact(self, record: npt.NDArray[np.uint8]) -> bool:
        """Whether a mapped record still is what its header says."""

    def find(self, key: Key) -> DiskRecord | None: ...
    def parent(self, key: Key) -> Key | None:
        """The key before a record's, None if it is not on disk."""

    def children(self, parent: Key) -> list[DiskRecord]: ...

    def tokens_of(self, record: DiskRecord) -> tuple[Ids, Roles] | None:
        """Ids and roles from the record's header; None if it cannot be read."""

    def gone(self, key: Key) -> Gone | None:
        """What became of a page that was here; None if it never was."""

    def moved(self, key: Key) -> bool:
        """Whether the record holds a state that was moved after a removal, or follows one."""

    def write(self, request: WriteRequest, done: Callable[[bool], None]) -> int:
        """Queues a record; returns its bytes. `done(True)` once it is durable, `done(False)` if it could not be: where
        that is known, at once, and 0 is returned."""

    def drop_windows(self, keys: Sequence[Key], since: Sequence[Key]) -> None:
        """Queued behind the writes before it: the sliding-window layers of pages are not needed any more, once those of
        the pages `since` then, the last window, are durable."""

    def write_state(self, request: StateRequest) -> int:
        """Queues a snapshot; returns its bytes."""

    def states(self, parent: Key) -> list[StateRecord]:
        """Snapshots of the states that follow a page."""

    def read_state(self, record: StateRecord, ids: Ids, roles: Roles, numerics: str) -> npt.NDArray[np.uint8] | None:
        """The checked snapshot; None if it cannot be used, and then it is not found again. Waits for the disk."""

    def save_head(self, head: Head) -> None:
        """Queued behind the writes before it: a head never becomes durable before its pages."""

    def forget(self, conversation: str, delete: bool) -> None:
        """Removes the head; `delete` also removes what no other conversation uses."""

    def kept_elsewhere(self, conversation: str, tokens: int) -> str:
        """Why more than `tokens` tokens of it were kept last, but not for this model as it runs; or ""."""

    def refused(self) -> str:
        """Why what was to be saved last was not, in words; "" if it was."""

    def refusal(self, conversation: str) -> Gone | None:
        """Why the end of a conversation was not saved last (see messages.ComputedRange), and when; None if it was."""

    def heads(self) -> dict[str, Head]: ...
    def map(self, records: Sequence[DiskRecord], choose: bool = True) -> list[npt.NDArray[np.uint8] | None]:
        """uint8 [record bytes] of each page straight from its file, read-only; None: it has to be read into memory.

        `choose`: also where that has been faster. Not to be touched before a `read` of it has succeeded.
        """

    def read(self, requests: Sequence[ReadRequest]) -> ReadTicket: ...

    def touch(self, key: Key) -> None:
        """The record was used now, and with it all before it."""

    def discard(self, key: Key) -> None:
        """The record counts as damaged from now on."""

    def note_check(self, equal: bool) -> None:
        """A page that came from here was computed again in idle time and compared."""

    def note_costs(self, costs: Costs) -> None:
        """By which the worth of pages is judged when the disk budget is reached."""

    def index_bytes(self) -> int:
        """Memory that the maps of the index take."""

    def pin(self, conversation: str, pinned: bool) -> None:
        """Pages of a pinned conversation are never evicted. Queued behind the writes before it."""

    def claim(self, key: Key) -> bool:
        """Whether this process may compute the page, and no other one does: until `unclaim`, or its end."""

    def unclaim(self, key: Key) -> None: ...

    def hand_over(self) -> Handed:
        """Queued behind the writes before it: that they lie in the files, durable or not yet, where a later process
        finds them if this one is killed."""

    def flush(self, timeout: float | None = None) -> bool: ...
    def pending_bytes(self) -> int: ...
    def notices(self) -> list[Notice]: ...
