"""Conversations: where each one ends in the page tree, in memory and in the disk tier."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from engine.kv.disk import DiskTier, Head
from engine.kv.keys import Key
from engine.kv.tree import Node, PageTree


class Own:
    """What the conversation that asks has kept itself. `ends`: numbers of tokens after which a tail of it ended, its
    `history` among them."""

    def __init__(self, conversations: Conversations, name: str, history: int) -> None:
        self._conversations = conversations
        self._head = conversations.head(name)
        self.history = history
        self.ends = (*([self._head.tokens] if self._head else []), history)

    @cached_property
    def keys(self) -> set[Key]:
        """Of all its pages; empty where nothing was kept for it yet."""
        return self._conversations.keys(self._head) if self._head else set()


class Conversations:
    """Heads by conversation. Those of other processes and earlier runs come from the disk tier."""

    def __init__(self, tree: PageTree, disk: DiskTier | None, root: Key) -> None:
        self._tree = tree
        self._disk = disk
        self._root = root
        self._heads: dict[str, Head] = {}
        self._forgotten: set[str] = set()  # the disk tier may still list them for a moment

    def heads(self) -> dict[str, Head]:
        """All heads; this process's own view of a conversation goes before the disk's."""
        durable = self._disk.heads() if self._disk else {}
        return {**{name: head for name, head in durable.items() if name not in self._forgotten}, **self._heads}

    def head(self, conversation: str) -> Head | None:
        """Of one conversation, see `heads`."""
        own = self._heads.get(conversation)
        if own is not None or self._disk is None or conversation in self._forgotten:
            return own
        return self._disk.heads().get(conversation)

    def last_saved(self, conversation: str) -> float | None:
        """When the conversation's head last became durable (unix time)."""
        durable = self._disk.heads().get(conversation) if self._disk else None
        return durable.saved if durable else None

    def set_head(self, head: Head) -> None:
        """Moves the conversation's end; the tail it had before is freed if nobody else ends there."""
        previous = self._heads.get(head.conversation)
        known = previous or (self._disk.heads().get(head.conversation) if self._disk else None)
        head = replace(head, pinned=bool(known and known.pinned))
        self._heads[head.conversation] = head
        self._forgotten.discard(head.conversation)
        if self._disk:
            self._disk.save_head(head)
        if previous and previous.tail and not any(h.tail == previous.tail for h in self._heads.values()):
            self._free(self._tree.get(previous.tail))

    def pin(self, conversation: str, pinned: bool) -> None:
        """Keeps its pages from being evicted; nothing happens where it has none."""
        head = self.heads().get(conversation)
        if head is not None:
            self._heads[conversation] = replace(head, pinned=pinned)
            if self._disk:
                self._disk.pin(conversation, pinned)

    def is_pinned(self, conversation: str) -> bool:
        head = self.heads().get(conversation)
        return head is not None and head.pinned

    def keys(self, head: Head) -> set[Key]:
        """Keys of all pages (and the tail) a conversation uses, as far as they are known."""
        keys, key = {head.tail} if head.tail else set(), head.last
        while key != self._root and key not in keys:
            keys.add(key)
            parent = self._parent(key)
            if parent is None:
                break
            key = parent
        return keys

    def parent(self, key: Key) -> Key | None:
        """The key before a page's or a tail's, None if the page is not known."""
        return self._parent(key)

    def users(self, keys: set[Key], besides: str) -> dict[str, set[Key]]:
        """Other conversations that use some of `keys`, and which."""
        others = (head for name, head in self.heads().items() if name != besides)
        shared = {head.conversation: self.keys(head) & keys for head in others}
        return {name: common for name, common in shared.items() if common}

    def free_memory(self, conversation: str) -> None:
        """Frees resident nodes that only this conversation uses and no sequence holds."""
        head = self.heads().get(conversation)
        if head is None:
            return
        mine = self.keys(head)
        mine -= set().union(*self.users(mine, conversation).values())
        nodes = [node for key in mine if (node := self._tree.get(key)) is not None]
        for node in sorted(nodes, key=lambda node: -node.stop):
            self._free(node)

    def forget(self, conversation: str) -> None:
        self._heads.pop(conversation, None)
        self._forgotten.add(conversation)
        if self._disk:
            self._disk.forget(conversation, delete=True)

    def _parent(self, key: Key) -> Key | None:
        node = self._tree.get(key)
        if node is not None:
            return node.parent_key
        return self._disk.parent(key) if self._disk else None

    def _free(self, node: Node | None) -> None:
        if node is not None and not node.refs:
            self._tree.remove(node)
