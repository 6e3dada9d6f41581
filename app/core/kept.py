"""What the store keeps, seen without an engine: names of documents that were read ahead, and forgetting."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from engine.errors import StoreError
from engine.messages import ConversationId, document_of_state, document_state

log = logging.getLogger(__name__)


def shelf_state(documents: Iterable[int]) -> ConversationId:
    """Of documents that were read ahead together, in shelf order."""
    return document_state(shelf_name(documents))


def shelf_name(documents: Iterable[int]) -> str:
    """What the engine calls them: `3`, `3+7`."""
    return "+".join(map(str, documents))


def documents_of(state: str) -> tuple[int, ...]:
    """The documents whose state that is; () for a conversation's."""
    name = document_of_state(state)
    return tuple(int(part) for part in name.split("+") if part.isdecimal()) if name is not None else ()


def forget_kept(kv: Path, is_gone: Callable[[str], bool], drop: Callable[[str], object] | None) -> None:
    """Frees what is kept under names that `is_gone` says. `drop` does it where an engine has the store in use; None: it
    is done here. A store that cannot be opened now keeps it until its budget is used up.
    """
    from engine.store.opening import INDEX_NAME
    from engine.store.tools import StoreTools

    if not (kv / INDEX_NAME).is_file():
        return
    try:
        with StoreTools(kv) as tools:
            for name in filter(is_gone, tools.names()):
                (drop or tools.forget)(name)
            for notice in tools.notices:
                log.warning("%s %s", notice.what, notice.why)
    except (StoreError, sqlite3.Error) as error:
        log.info("kept state could not be freed: %s", type(error).__name__)
