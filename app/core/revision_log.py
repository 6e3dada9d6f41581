"""Changes of a history in the log of the KV state: what stands there afterwards explains what is read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.core.settings import Settings
from engine.kv.log import KvLog
from engine.messages import ConversationId

Note = Callable[..., None]


def revision_log(kv: Path, settings: Callable[[], Settings]) -> Note:
    """What notes an operation on a conversation, at once and whoever has the store open."""

    def note(operation: str, conversation: ConversationId, **fields: Any) -> None:
        log = KvLog(kv, settings().engine.cache_log)
        log.add("info", operation, conversation=conversation, **fields)
        log.flush()

    return note
