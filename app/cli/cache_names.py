"""Names of what the store keeps: conversations, the trash included, imported states, documents that were read ahead."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from app.cli.notices import of_command
from app.core.conversations import ConversationStore
from app.core.errors import UserError
from app.core.imported import imported_names
from app.core.kept import documents_of
from app.core.naming import SHORT_ID, conversation_called, there_is
from app.core.paths import Paths
from app.core.records import Conversation
from engine.kv.log import last_refusal
from engine.store.tools import StoreTools

Status = Literal["conversation", "in the trash", "read ahead", "imported", "deleted"]
TRASHED: Status = "in the trash"


@dataclass(frozen=True)
class Named:
    """What a state is called, and what it is of; `name` and the beginning of its id (8 characters) name it."""

    name: str
    status: Status


class Names:
    """Of all states in `kept`, and of conversations of which nothing is kept."""

    def __init__(self, paths: Paths, kept: Iterable[str]) -> None:
        self._kv = paths.kv
        self.present, self.trashed = _stored(paths)
        self.kept = tuple(kept)
        self._imported = imported_names(paths.cache)
        self._documents: Mapping[int, str] = document_names(paths) if any(map(documents_of, self.kept)) else {}
        self._by_state = {state: self._of(state) for state in self.kept}

    def of(self, state: str) -> Named:
        return self._by_state.get(state) or self._of(state)

    def find(self, wanted: str) -> str | None:
        """The state's or conversation's id; None: unknown. UserError: it names several. A conversation goes before one
        of its name in the trash, and before nothing else."""
        if wanted in self.kept:
            return wanted
        found = conversation_called(self.present, wanted) or conversation_called(self.trashed, wanted)
        called = [state for state, named in self._by_state.items() if wanted == named.name and named.status != TRASHED]
        begun = [state for state in self.kept if len(wanted) >= SHORT_ID and state.startswith(wanted)]
        several = list(dict.fromkeys([found.id, *called] if found else called or begun))
        if len(several) > 1:
            they = ", ".join(f"{state} ({self.of(state).status})" for state in several)
            what = f"{len(several):,} states are called {wanted!r}."
            raise UserError(what, f"They are {they}.", "Give an id in place of the name.")
        return next(iter(several), None)

    def need(self, wanted: str) -> str:
        """UserError: unknown, with those that are known."""
        found = self.find(wanted)
        if found is not None:
            return found
        known = [self.of(state).name for state in self.kept]
        known += [c.title for c in (*self.present, *self.trashed) if c.id not in self.kept]
        there = there_is(known, nothing_kept(self._kv) if not known else "")
        raise UserError(
            "There is no such conversation.", f"None is called {wanted!r}. {there}", "See 'pagekeep cache ls'."
        )

    def need_kept(self, wanted: str) -> str:
        """UserError also where nothing is kept of it."""
        found = self.need(wanted)
        if found in self.kept:
            return found
        if refused := last_refusal(self._kv, found):
            next_step = of_command(refused.get("next", "")) or "See 'pagekeep cache stat'."  # older ones lack it
            raise UserError(f"Nothing is kept of {self.of(found).name!r}.", refusal_words(refused), next_step)
        why = "The model has not read it to its end yet, or its state was evicted or removed."
        raise UserError(f"Nothing is kept of {self.of(found).name!r}.", why, "Ask something in it; it is kept then.")

    def _of(self, state: str) -> Named:
        for conversations, status in ((self.present, "conversation"), (self.trashed, TRASHED)):
            if title := next((c.title for c in conversations if c.id == state), ""):
                return Named(title, status)  # type: ignore[arg-type]
        if documents := documents_of(state):
            names = [self._documents.get(document, f"document {document}, deleted") for document in documents]
            return Named(", ".join(names), "read ahead")
        if state in self._imported:
            return Named(self._imported[state], "imported")
        return Named(state[:SHORT_ID], "deleted")


def nothing_kept(kv: Path) -> str:
    refused = last_refusal(kv)
    return f"Nothing is kept. {refusal_words(refused)}" if refused else "Nothing is kept yet."


def refusal_words(entry: Mapping[str, Any]) -> str:
    """`Saving was refused at 2026-11-30 09:26: the disk budget is used up.`"""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["at"]))
    return f"Saving was refused at {when}: {entry['why'][:1].lower()}{entry['why'][1:]}"


def names_of(paths: Paths, tools: StoreTools) -> Names:
    return Names(paths, tools.names())


def _stored(paths: Paths) -> tuple[tuple[Conversation, ...], tuple[Conversation, ...]]:
    """Conversations, and those in the trash."""
    if not paths.conversations.is_file():
        return (), ()
    store = ConversationStore(paths.conversations)
    try:
        return store.list(), store.list(trashed=True)
    finally:
        store.close()


def document_names(paths: Paths) -> dict[int, str]:
    """Names of all documents, the trash included."""
    from rag import Library

    if not paths.library.is_dir():
        return {}
    library = Library(paths.library)
    try:
        return {int(document.id): document.name for document in library.documents(include_trashed=True)}
    finally:
        library.close()
