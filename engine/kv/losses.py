"""Pages that turn out wrong: damaged, or lost with mapped files that were cut short or failed while in use."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskTier
from engine.kv.doubts import Doubts
from engine.kv.hiddens import HiddenCache
from engine.kv.keys import Key
from engine.kv.notices import Notice, Stretch
from engine.kv.pool import PagePool
from engine.kv.sequence import Sequence
from engine.kv.tree import Node, PageTree
from kernels.guarded import lost_count

_LOOK_SECONDS = 0.5  # as often a running turn learns what others found damaged
LOST = ("damaged", "removed")  # what a read says of a record that is not to be had any more
_NOTICE = Notice(
    "A part of a saved conversation was lost while it was in use.",
    "Its file was cut short or removed by another program, or the disk fails.",
    "It is computed again from the stored text; nothing else is lost.",
)


class Losses:
    """Engine thread only. `doubts`: what was answered on pages before they were found wrong."""

    def __init__(self, tree: PageTree, pool: PagePool, disk: DiskTier | None, hiddens: HiddenCache) -> None:
        self._tree = tree
        self._pool = pool
        self._hiddens = hiddens
        self._disk = disk
        self._seen = lost_count()
        self._looked = 0.0
        self.doubts = Doubts()
        self._notices: list[Notice] = []
        self._met: dict[str, set[Stretch]] = {}

    def met(self, conversation: str, lost: Iterable[Stretch]) -> None:
        """The conversation was to have these tokens; the disk tier has said, or will say, what became of them."""
        self._met.setdefault(conversation, set()).update(lost)

    def notices(self, of_disk: Iterable[Notice], settled: bool) -> list[Notice]:
        """What the reader should know since the last call. `settled`: nothing is being read any more; what was lost is
        told then, of each conversation at once."""
        self._notices += of_disk
        kept = [] if settled else [notice for notice in self._notices if notice.lost]
        told = [notice for notice in self._notices if not notice.lost]
        lost = [notice for notice in self._notices if notice.lost and settled]
        for one in dict.fromkeys(replace(notice, lost=()) for notice in lost):
            told += self._by_conversation(one, {s for notice in lost if notice.why == one.why for s in notice.lost})
        self._notices = kept
        if settled:
            self._met = {}
        return told

    def _by_conversation(self, notice: Notice, lost: set[Stretch]) -> Iterator[Notice]:
        for conversation, met in self._met.items():
            if met & lost:
                yield notice.told(met & lost, conversation)
        if rest := lost.difference(*self._met.values()):
            yield notice.told(rest)

    def distrust(
        self, page: Node, sound: Callable[[Node], bool] = lambda node: False, right: float | None = None
    ) -> None:
        """The page and all after it count as absent from now on, on disk too but for what is `sound` there; a sequence
        that holds them ends before them at its next step. `right`: when it was right, see Doubts.met."""
        if not page.buffer.lost:  # else no step that read it since counted
            self.doubts.met(page, right)
        self._hiddens.clear()  # one may have been computed on it, and its key is that of a sound one
        below = [node for node in self._tree if page in node.path()]
        for node in sorted(below, key=lambda node: -node.stop):
            if self._disk and not sound(node):
                self._disk.discard(node.key)
            self._pool.spoil(node.buffer)
            self._tree.detach(node, "damaged")

    def look_again(self) -> bool:
        """Takes over what other processes did to the store; whether anything is there, or not any more, for that. A
        page that is used straight from a file whose record somebody took out, maybe for damage, is checked once more:
        also what another refresh of the store met."""
        found = self._disk is not None and self._disk.refresh()
        for key, times in Counter(self._disk.taken_out() if self._disk else ()).items():
            page = self._tree.get(key)
            record = page.buffer.record if page is not None else None
            if page is not None and record is not None and not self._is_intact(key, record, times):
                self._notices.append(_NOTICE)
                self.distrust(page, partial(_older, page.buffer.mapped_at))
                found = True
        return found

    def _is_intact(self, key: Key, record: npt.NDArray[np.uint8], times: int) -> bool:
        """What was evicted or dropped was sound, and may be gigabytes: it is not read, unless it was taken out several
        `times`. Who finds damage writes the page anew, and that may be evicted then, or be there again."""
        if self._disk is None:
            return True
        gone = self._disk.gone(key) if times == 1 else None
        return (gone is not None and gone.reason not in LOST) or self._disk.intact(record)

    def sound(self, sequence: Sequence, at_once: bool = False) -> bool:
        """Whether all memory that a step of the sequence read is what it was. False: the sequence ends before what was
        lost now, which counts as absent. `at_once`: also as others have found by now, and not within half a second."""
        if at_once or time.monotonic() - self._looked > _LOOK_SECONDS:
            self.look_again()
            self._looked = time.monotonic()
        count = lost_count()
        if count != self._seen:
            self._seen = count
            self._distrust_lost()
        return not (count or self._pool.spoiled) or not sequence.cut_lost()

    def _distrust_lost(self) -> None:
        lost = sorted((node for node in self._tree if node.buffer.lost), key=lambda node: node.start)
        for node in lost:
            if node.resident:
                self.distrust(node)
        self._notices += [_NOTICE] if lost else []


def _older(moment: float, page: Node) -> bool:
    """It was computed before that moment, or read from disk: what was found wrong then is not in it."""
    return page.restored or page.made < moment
