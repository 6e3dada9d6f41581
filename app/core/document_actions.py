"""Documents as the reader handles them: taken in, read from scans, thrown away, brought back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.downloads import IsCancelled, OnBytes, never, silent
from app.core.embedding import Shelves
from app.core.events import JobId
from app.core.folders import Folders
from app.core.imports import Imports
from app.core.kept import documents_of, forget_kept, shelf_state
from app.core.planning import Planner
from engine.messages import ConversationId
from rag.types import DocumentId

if TYPE_CHECKING:
    from app.core.conversations import ConversationStore
    from rag import Document

Drop = Callable[[ConversationId], object]


class DocumentActions:
    """`dropping` gives what frees a state of the engine, or None while no model has the store in use; `changed` hears
    that a document went or came back."""

    def __init__(
        self,
        shelves: Shelves,
        imports: Imports,
        folders: Folders,
        planner: Planner,
        store: Callable[[], ConversationStore],
        attach: Callable[[ConversationId, int], object],
        kv: Path,
        dropping: Callable[[], Drop | None],
        changed: Callable[[], None],
    ) -> None:
        self._shelves = shelves
        self._imports = imports
        self._folders = folders
        self._planner = planner
        self._store = store
        self._attach = attach
        self._kv = kv
        self._dropping = dropping
        self._changed = changed

    def add(self, path: Path, password: str | None = None, attach_to: ConversationId | None = None) -> JobId:
        """Returns at once; ImportQueued, ImportProgress* -> ImportDone | ImportFailed | ImportCancelled.

        ImportDone comes when questions can be asked; vectors follow in the background, then DocumentReady.
        """

        def done(document: Document) -> None:
            self._folders.took_in(path, document)
            if attach_to is not None:
                self._attach(attach_to, int(document.id))

        return self._imports.submit(path, password, done)

    def recognise(self, document: int, pages: Sequence[int] | None = None) -> JobId:
        """Reads scanned pages, by default all; returns at once. Events as of an import. `rag.recognise.available` tells
        whether the packages for it are installed."""
        known = self._shelves.library().document(DocumentId(document))
        return self._imports.recognise(known, pages)

    def fetch_embedder(self, on_bytes: OnBytes = silent, cancelled: IsCancelled = never) -> None:
        """Blocking, for the command line; imports fetch it by themselves. Raises UserError, Cancelled."""
        self._shelves.fetch_embedder(on_bytes, cancelled)

    def prepare_search(self) -> None:
        """Passages will be looked for: what finds by meaning is loaded meanwhile, as no search waits for it."""
        self._shelves.warm()

    def make_vectors(self) -> None:
        """Of all that has none yet; returns at once."""
        self._imports.make_vectors()

    def cancel(self, job: JobId) -> None:
        self._imports.cancel(job)

    def resume(self) -> None:
        """Goes on with imports that a quit or crash cut short; for after the start. Returns at once."""
        self._imports.resume()

    def trash(self, document: int) -> None:
        """Undone by `restore`. Reading it ahead is stopped."""
        self._shelves.library().trash(DocumentId(document))
        self._changed()

    def restore(self, document: int) -> None:
        self._shelves.library().restore(DocumentId(document))
        self._changed()

    def purge(self, document: int) -> None:
        """Out of the trash for good; of its KV only what conversations use stays."""
        self._shelves.library().purge(DocumentId(document))
        self._store().dates.forget(document)
        drop = self._dropping()
        if drop is not None:
            drop(shelf_state([document]))
        by_name = None if drop is None else lambda name: drop(ConversationId(name))
        forget_kept(self._kv, lambda name: document in documents_of(name), by_name)
