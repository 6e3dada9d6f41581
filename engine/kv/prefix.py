"""What of a token list is computed already: the value that a look-up returns."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeGuard, cast

import numpy as np
import numpy.typing as npt

from engine.kv.disk import DiskRecord
from engine.kv.keys import Ids, Key, Roles, page_key
from engine.kv.shift import Salts, salt_key
from engine.kv.tree import Node
from engine.messages import FirstDifference

Source = Node | DiskRecord


@dataclass(frozen=True)
class PartialSource:
    """The first `tokens` tokens of a page or tail that continues the prefix."""

    source: Source
    tokens: int
    ids: Ids
    roles: Roles  # of the whole source

    def lists(self) -> tuple[list[int], list[int]]:
        """Ids and roles of the part that is used."""
        return self.ids[: self.tokens].tolist(), self.roles[: self.tokens].tolist()


@dataclass(frozen=True)
class PrefixMatch:
    """What of a token list is computed already.

    Attributes:
        tokens: length of the reusable prefix, `memory_tokens` + `disk_tokens`; may be the whole list.
        foreign_tokens: part of it that was computed under another numerics label (outside the equality
            promise).
        missing_reason: why it ends there, "" if it does not; missing_at: since when. See messages.ComputedRange.
        ids, roles: the whole token list; pages: full pages; partial: what continues after them.
        hidden: final hidden vector of the last token if the match is complete and it was kept.
        salts: see shift.py.
        difference: the first token at which what the conversation kept goes another way.
        unfinished: pages in memory without their sliding-window layers, which are needed, and where those lie.
        walked: so many leading pages are known to be in memory.
        parted: where a prefix ends of which some layers' state is missing: the next one may part there too. 0: none.
    """

    ids: Ids
    roles: Roles
    pages: tuple[Source, ...]
    partial: PartialSource | None
    missing_reason: str
    page_tokens: int
    numerics: str
    hidden: npt.NDArray[np.float32] | None = field(default=None, repr=False)
    difference: FirstDifference | None = None
    salts: Salts = field(default_factory=dict)
    unfinished: tuple[tuple[Node, DiskRecord], ...] = ()
    parted: int = 0
    missing_at: float = 0.0
    walked: int = 0

    @property
    def tail_salts(self) -> tuple[Ids, ...]:
        """Salts of the page after `pages`, as far as something of it is used."""
        return self.salts.get(len(self.pages), ()) if self.partial else ()

    @property
    def tokens(self) -> int:
        return len(self.pages) * self.page_tokens + (self.partial.tokens if self.partial else 0)

    @cached_property
    def disk_tokens(self) -> int:
        return sum(count for source, count in self._sources(self.walked) if isinstance(source, DiskRecord))

    @property
    def memory_tokens(self) -> int:
        return self.tokens - self.disk_tokens

    @property
    def foreign_tokens(self) -> int:
        return sum(count for source, count in self._sources() if source.numerics != self.numerics)

    @property
    def disk_bytes(self) -> int:
        """Bytes a restore has to read."""
        missing = sum(record.bytes for _, record in self.unfinished)
        unread = self._sources(self.walked)
        return missing + sum(source.bytes for source, _ in unread if isinstance(source, DiskRecord))

    def end_key(self, root: Key) -> Key:
        """Of what it ends with, where it is all of the token list."""
        last = self.pages[-1].key if self.pages else root
        done = len(self.pages) * self.page_tokens
        chain = salt_key(last, self.tail_salts)
        return page_key(chain, self.ids[done:], self.roles[done:]) if self.partial else last

    def in_memory(self, reason: str) -> PrefixMatch:
        """The part that needs no reading; `reason`: why it ends there."""
        pages = tuple(itertools.takewhile(lambda source: isinstance(source, Node), self.pages))
        whole = len(pages) == len(self.pages)
        partial = self.partial if whole and self.partial and isinstance(self.partial.source, Node) else None
        return replace(
            self, pages=pages, partial=partial, missing_reason=reason, hidden=None, difference=None, missing_at=0.0
        )

    def _sources(self, start: int = 0) -> Iterator[tuple[Source, int]]:
        yield from ((source, self.page_tokens) for source in self.pages[start:])
        if self.partial:
            yield self.partial.source, self.partial.tokens


def resident(source: Source) -> TypeGuard[Node]:
    return isinstance(source, Node) and source.resident


def leading_nodes(match: PrefixMatch) -> list[Node]:
    """The pages up to the first that is not in memory."""
    known = match.pages[: match.walked]
    nodes = cast("list[Node]", [*known] if known and resident(known[-1]) else [])
    for source in match.pages[len(nodes) :]:
        if not resident(source):
            break
        nodes.append(source)
    return nodes
