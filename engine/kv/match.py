"""Finding the longest computed prefix of a token list: sealed pages by key, then the best partial page or tail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from engine.kv.conversations import Own
from engine.kv.disk import DiskRecord, DiskTier, Gone
from engine.kv.keys import Ids, Key, Roles, arrays, common_prefix, cut_bytes, key_of, page_key
from engine.kv.layout import PageLayout
from engine.kv.prefix import PartialSource, PrefixMatch, Source
from engine.kv.shift import Salts, salt_key, salts_of
from engine.kv.tree import Node, PageTree
from engine.kv.windows import looked_back_on, usable_tokens
from engine.messages import FirstDifference, Shift, Tokens


class Matcher:
    """Looks prefixes up in memory, then in the disk tier's index."""

    def __init__(self, tree: PageTree, disk: DiskTier | None, root: Key, layout: PageLayout, numerics: str) -> None:
        self._tree = tree
        self._disk = disk
        self._find: Callable[[Key], DiskRecord | None] = disk.find if disk else lambda key: None
        self._root = root
        self._page_tokens = layout.page_tokens
        self._lookback, self._window_groups = layout.lookback, layout.window_groups
        self._groups = len(layout.groups)
        self._numerics = numerics

    def match(self, ids: Ids, roles: Roles, salts: Salts | None = None, own: Own | None = None) -> PrefixMatch:
        """See PrefixMatch. Ids of pages on disk are compared when they are read, not here.

        `own`: of the conversation that asks; where another one goes another way, nothing was edited. None: all count.
        """
        salts = salts or {}
        walk = None if salts else self._tree.walks.along(ids.tobytes(), roles.tobytes())
        parent, pages = self._full_pages(ids, roles, salts, walk.pages if walk else ())
        chain = salt_key(parent, salts.get(len(pages), ()))
        done = len(pages) * self._page_tokens
        rest = ids[done:], roles[done:]
        partial, difference = self._best_partial(parent, chain, *rest, done, own)
        gone, difference = self._why_ended(chain, *rest, done, partial, difference, own)
        match = PrefixMatch(
            ids, roles, tuple(pages), partial, gone.reason, self._page_tokens, self._numerics, None, difference, salts,
            missing_at=gone.at, walked=len(walk.pages) if walk else 0,
        )  # fmt: skip
        return self._continuable(match) if self._lookback else match

    def beyond(
        self, held: tuple[Node, ...], tokens: Tokens, shifts: tuple[Shift, ...] = ()
    ) -> tuple[PrefixMatch, int] | None:
        """What is there behind pages that are not, after those that are held; with the number of its first page. What
        has to be computed before that stands in the match as records without parts. Where none of the pages is left,
        that may be the end alone. None: nothing that can be used."""
        (ids, roles), salts = arrays(tokens), salts_of(shifts, self._page_tokens)
        size, first, missing = self._page_tokens, 0, False
        parent, pages = held[-1].key if held else self._root, list[Source](held)
        for data in cut_bytes(ids[len(held) * size :], roles[len(held) * size :], size):
            key = key_of(salt_key(parent, salts.get(len(pages), ())), data)
            found = self._there(key, parent, data)
            if found is None and first:
                break
            missing = missing or found is None
            first = first or (len(pages) if missing and found else 0)
            to_come = DiskRecord(key, parent, False, len(pages) * size, size, self._numerics, ())
            pages.append(found if found and first else to_come)
            parent = key
        if not missing:
            return None
        first, done = first or len(pages), len(pages) * size
        chain = salt_key(parent, salts.get(len(pages), ()))
        partial, _ = self._best_partial(parent, chain, ids[done:], roles[done:], done, None)
        match = PrefixMatch(ids, roles, tuple(pages), partial, "", size, self._numerics, salts=salts)
        match = self._continuable(match) if self._lookback else match
        return (match, first) if match.tokens > first * size else None

    def _continuable(self, match: PrefixMatch) -> PrefixMatch:
        """The part after which all layers hold what they look back on; what lies before is read without windows."""
        spans = [(self._page_tokens, self._whole(source)) for source in match.pages]
        if match.partial:
            spans.append((match.partial.tokens, self._whole(match.partial.source)))
        usable = usable_tokens(spans, self._lookback)
        if usable < match.tokens:
            pages = match.pages[: usable // self._page_tokens]
            match = replace(
                match, pages=pages, partial=None, missing_reason="sliding window", missing_at=0.0, difference=None,
                parted=match.tokens,
            )  # fmt: skip
        needed = looked_back_on(usable, self._lookback, self._page_tokens)
        narrowed = [s if i in needed else self._without_windows(s) for i, s in enumerate(match.pages)]
        return replace(match, pages=tuple(narrowed), unfinished=self._unfinished(match, needed))

    def _unfinished(self, match: PrefixMatch, needed: range) -> tuple[tuple[Node, DiskRecord], ...]:
        sources = enumerate((*match.pages, match.partial.source) if match.partial else match.pages)
        nodes = [source for i, source in sources if i in needed and isinstance(source, Node) and not source.whole]
        kept = set(range(self._groups)) - set(self._window_groups)
        return tuple((node, found.without(kept)) for node in nodes if (found := self._complete(node)))

    def _whole(self, source: Source) -> bool:
        return source.whole or (isinstance(source, Node) and self._complete(source) is not None)

    def _complete(self, node: Node) -> DiskRecord | None:
        """The record that has what a page in memory lacks."""
        record = self._disk.find(node.key) if self._disk else None
        return record if record and record.whole and record.parent == node.parent_key else None

    def _without_windows(self, source: Source) -> Source:
        return source.without(self._window_groups) if isinstance(source, DiskRecord) and source.parts else source

    def _full_pages(self, ids: Ids, roles: Roles, salts: Salts, walked: tuple[Node, ...]) -> tuple[Key, list[Source]]:
        """`walked`: what is known to begin with."""
        parent, pages = walked[-1].key if walked else self._root, list[Source](walked)
        done = len(pages) * self._page_tokens
        for data in cut_bytes(ids[done:], roles[done:], self._page_tokens):
            chain = salt_key(parent, salts[len(pages)]) if salts and len(pages) in salts else parent
            key = key_of(chain, data)
            found = self._there(key, parent, data)
            if found is None:
                break
            pages.append(found)
            parent = key
        return parent, pages

    def _there(self, key: Key, parent: Key, data: bytes) -> Source | None:
        """The page in memory or on disk."""
        node = self._tree.find_bytes(key, data)
        if node is not None:
            return node
        record = self._find(key)
        return record if record is not None and record.parent == parent and not record.tail else None

    def _best_partial(
        self, parent: Key, chain: Key, ids: Ids, roles: Roles, start: int, own: Own | None
    ) -> tuple[PartialSource | None, FirstDifference | None]:
        """The child of `parent` that shares most leading tokens; and where the one of `own` that went furthest parts.

        `chain` stands for the parent in the child's key: what was moved to this place never passes for pure.
        """
        best: PartialSource | None = None
        difference = None

        def enough() -> bool:
            """What is in memory is all that is wanted of a page, or all that the conversation had kept."""
            if best is None:
                return False
            return best.tokens == min(len(ids), self._page_tokens) or (
                own is not None and start + best.tokens in own.ends
            )

        for source, other_ids, other_roles in self._children(parent, enough) if len(ids) else ():
            pure = chain == parent and isinstance(source, Node) and not source.salts
            if not pure and page_key(chain, other_ids, other_roles) != source.key:
                continue
            count = common_prefix(ids, roles, other_ids, other_roles)
            parts = count < min(len(ids), len(other_ids)) and self._counts(own, source.key, start + count)
            if parts and (not difference or start + count > difference.position):
                pairs = (int(other_ids[count]), int(ids[count]), int(other_roles[count]), int(roles[count]))
                difference = FirstDifference(start + count, *pairs)
            if count > (best.tokens if best else 0):
                best = PartialSource(source, count, other_ids, other_roles)
        return best, difference

    def _counts(self, own: Own | None, key: Key, position: int) -> bool:
        """Whether a page that parts at `position` was the conversation's: all behind its history is new."""
        return own is None or (not 0 < own.history <= position and key in own.keys)

    def _children(self, parent: Key, enough: Callable[[], bool]) -> Iterator[tuple[Source, Ids, Roles]]:
        resident = self._tree.children(parent)
        yield from ((node, node.ids, node.roles) for node in resident)
        known = {node.key for node in resident}
        for record in self._disk.children(parent) if self._disk and not enough() else ():
            tokens = None if record.key in known or self._disk is None else self._disk.tokens_of(record)
            if tokens is not None:
                yield record, *tokens

    def _why_ended(
        self, chain: Key, ids: Ids, roles: Roles, start: int, partial: PartialSource | None,
        difference: FirstDifference | None, own: Own | None,
    ) -> tuple[Gone, FirstDifference | None]:  # fmt: skip
        """Why nothing is there behind the partial page ("": it is the end), and the difference if that says more."""
        reused = start + (partial.tokens if partial else 0)
        if reused == start + len(ids):
            return Gone("", 0.0), None
        all_missing_is_new = own is not None and 0 < own.history <= reused
        gone = None if all_missing_is_new else self._gone_first(chain, ids, roles, start, own)
        if gone is None:
            gone = Gone("edited" if difference else "not in cache", 0.0)
        return gone, difference if gone.reason != "not in cache" else None

    def _gone_first(self, chain: Key, ids: Ids, roles: Roles, start: int, own: Own | None) -> Gone | None:
        """What became of the page behind the reusable ones, or of the tail that the conversation had there."""
        lengths = [self._page_tokens, *(end - start for end in (own.ends if own else ()))]
        for length in lengths:
            if 0 < length <= min(len(ids), self._page_tokens):
                found = self._gone(page_key(chain, ids[:length], roles[:length]))
                if found:
                    return found
        return None

    def _gone(self, key: Key) -> Gone | None:
        return (self._disk.gone(key) if self._disk else None) or self._tree.gone(key)
