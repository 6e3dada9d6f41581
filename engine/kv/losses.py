"""Pages that turn out wrong: damaged, or lost with mapped files that were cut short or failed while in use."""

from __future__ import annotations

from engine.kv.disk import DiskTier, Notice
from engine.kv.sequence import Sequence
from engine.kv.tree import Node, PageTree
from kernels.guarded import lost_count

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

    def notices(self) -> list[Notice]:
        """What the reader should know since the last call."""
        found, self._notices = self._notices, []
        return found

    def distrust(self, page: Node) -> None:
        """The page and all after it count as absent from now on, on disk too; who holds them is not touched."""
        below = [node for node in self._tree if page in node.path()]
        for node in sorted(below, key=lambda node: -node.stop):
            if self._disk:
                self._disk.discard(node.key)
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
