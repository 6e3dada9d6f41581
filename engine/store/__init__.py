"""The disk tier: append-only segments, an index, write-behind and verified restore. See FORMAT.md."""

from engine.store.store import KvStore

__all__ = ["KvStore"]
