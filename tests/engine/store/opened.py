"""A store with a cache over it, opened for the length of a test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from engine.kv.cache import KvCache
from engine.kv.layout import PageLayout
from engine.kv.log import KvLog
from engine.kv.prefix import PrefixMatch
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from engine.store import KvStore
from tests.engine.kv.small import append, small_layout

FINGERPRINT = b"small model".ljust(32, b"\0")


def tokens_of(ids: Iterable[int]) -> Tokens:
    listed = tuple(ids)
    return Tokens(listed, tuple(i % 2 for i in listed))


def restore(cache: KvCache, found: PrefixMatch) -> Sequence:
    pending = cache.begin_restore(found)
    assert pending.wait(240), "the restore did not end"
    return pending.take()


class Opened:
    """`with Opened(folder) as it:` gives `it.store` and `it.cache`."""

    def __init__(
        self,
        folder: Path,
        layout: PageLayout | None = None,
        fingerprint: bytes = FINGERPRINT,
        ram_budget: int = 4 << 20,
        disk_budget: int = 1 << 30,
        log: KvLog | None = None,
    ) -> None:
        layout = layout or small_layout()
        self.store = KvStore(folder, layout, fingerprint, budget=disk_budget, name="small", log=log)
        self.cache = KvCache(layout, fingerprint, "test", self.store, ram_budget)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.cache.flush(240)
        self.store.close(240)

    def converse(self, conversation: str, tokens: Tokens) -> Sequence:
        """Computes what is missing of `tokens`, saves it durably, and returns the sequence."""
        found = self.cache.match(tokens)
        sequence = restore(self.cache, found) if found.disk_tokens else self.cache.sequence(found)
        done = sequence.num_tokens
        append(sequence, Tokens(tokens.ids[done:], tokens.roles[done:]))
        self.cache.save(conversation, sequence)
        assert self.cache.flush(240)
        return sequence
