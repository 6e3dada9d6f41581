"""Pages that turn out wrong: damaged, or lost with mapped files that were cut short or failed while in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from engine.kv.disk import DiskTier
from engine.kv.notices import Notice, Stretch
from engine.kv.sequence import Sequence
from engine.kv.tree import Node, PageTree
from kernels.guarded import lost_count

LOST = ("damaged", "removed")  # what a read says of a record that is not to be had any more
_NOTICE = Notice(
    "A part of a saved conversation was lost while it was in use.",
    "Its file was cut short or removed by another program, or the disk fails.",
    "It is computed again from the stored text; nothing else is lost.",
)


class Losses:
    """Engine thread only."""

    def __init__(self, tree: PageTree, disk: DiskTier | None) -> None:
        self._tree = tree
        self._disk = disk
        self._seen = lost_count()
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

    def distrust(self, page: Node) -> None:
        """The page and all after it count as absent from now on, on disk too; who holds them is not touched."""
        below = [node for node in self._tree if page in node.path()]
        for node in sorted(below, key=lambda node: -node.stop):
            if self._disk:
                self._disk.discard(node.key)
            node.buffer.spoiled = True
            self._tree.detach(node, "damaged")

    def sound(self, sequence: Sequence) -> bool:
        """Whether all memory that a step of the sequence read is what it was. False: the sequence ends before what was
        lost now, which counts as absent."""
        count = lost_count()
        if count != self._seen:
            self._seen = count
            self._distrust_lost()
        return not count or not sequence.cut_lost()

    def _distrust_lost(self) -> None:
        lost = sorted((node for node in self._tree if node.buffer.lost), key=lambda node: node.start)
        for node in lost:
            if node.resident:
                self.distrust(node)
        self._notices += [_NOTICE] if lost else []
