"""Documents are read by the model before anybody asks: what every first question on them begins with is computed.

One document at a time, the most recently added first, then those that conversations without a question have together,
in shelf order; only such as automatic mode would put into the prompt whole. The engine keeps it below all turns, and
it begins when imports and their vectors are done: beside it these get next to nothing of the processor, and they are
what makes a document searchable. Stopped on battery, by the preference, by the reader and by the trash; what was read
is kept.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.core.errors import UserError
from app.core.events import ConversationChanged, ImportDone, ImportProgress, WorkspaceEvent
from app.core.gate import ModelGate, ReadyModel
from app.core.kept import shelf_name
from app.core.planning import Planner
from engine.messages import (
    DocumentRead,
    DocumentStopped,
    ModelLoaded,
    PrefillDocument,
    StopDocument,
    Tokens,
)

if TYPE_CHECKING:
    from engine.client import EngineClient
    from rag import Document, Library

log = logging.getLogger(__name__)
BATTERY_EVERY_S = 15.0
INDEXING_EVERY_S = 0.5  # whether it has ended
Key = tuple[tuple[int, int, int], ...]  # ids, extractions, characters: text read anew or recognised makes it another


def on_battery() -> bool:
    """False where the machine has no battery or does not tell."""
    import psutil

    if not hasattr(psutil, "sensors_battery"):
        return False
    battery = psutil.sensors_battery()
    return battery is not None and battery.power_plugged is False


@dataclass(frozen=True)
class Shelf:
    """Documents whose texts stand at the head of a prompt, one after another."""

    documents: tuple[Document, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(int(document.id) for document in self.documents)

    @property
    def name(self) -> str:
        """What the engine calls it."""
        return shelf_name(self.ids)

    @property
    def label(self) -> str:
        return ", ".join(document.name for document in self.documents)

    @property
    def key(self) -> Key:
        return tuple((int(one.id), one.extraction, one.characters) for one in self.documents)


@dataclass(frozen=True)
class ReadAheadServices:
    """What reading ahead works with; parts that open lazily are functions. `enabled`: the preference.
    `together`: ids of documents that a first question would be about together. `indexing`: documents are taken in or
    get vectors at this moment."""

    library: Callable[[], Library]
    engine: Callable[[], EngineClient]
    gate: ModelGate
    planner: Planner
    together: Callable[[], Sequence[tuple[int, ...]]]
    enabled: Callable[[], bool]
    indexing: Callable[[], bool]
    emit: Callable[[WorkspaceEvent], None]
    on_battery: Callable[[], bool] = on_battery


class ReadAhead:
    """A thread that decides which document is read; started with the first event, thread-safe.

    Documents are named to the engine by their ids in the library.
    """

    def __init__(self, services: ReadAheadServices) -> None:
        self._with = services
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._woken = False
        self._closed = False
        self._held = False  # by the reader, until a model is loaded or a document comes
        self._no_power = False
        self._indexing = False
        self._reading: Key | None = None
        self._settled: set[Key] = set()  # read, or not to be read, with this model

    def hear(self, event: WorkspaceEvent) -> None:
        """On the engine's thread and on those of imports; quick."""
        with self._changed:
            if isinstance(event, ModelLoaded):
                self._settled.clear()
                self._reading, self._held = None, False
            elif isinstance(event, ImportDone) and not event.known:
                self._held = False
            elif isinstance(event, ImportProgress):
                if self._indexing:
                    return
            elif isinstance(event, ConversationChanged):
                if len(event.conversation.documents) < 2:
                    return
            elif isinstance(event, DocumentRead | DocumentStopped) and self._is_reading(event.document):
                self._ended(event)
            else:
                return
        self.wake()

    def wake(self) -> None:
        """Something it depends on has changed: documents, preference, power."""
        with self._changed:
            if self._closed:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)
                self._thread.start()
            self._woken = True
            self._changed.notify_all()

    def hold(self) -> None:
        """The reader wants it to stop. It goes on when a model is loaded or a new document comes."""
        with self._changed:
            self._held = True
        self.wake()

    def go_on(self) -> None:
        """Undoes `hold`: it continues where it was."""
        with self._changed:
            self._held = False
        self.wake()

    def close(self, timeout: float) -> None:
        """Ends the thread; the engine stops and keeps what it reads when it is closed."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    # --- the thread -----------------------------------------------------------------------------------
    def _run(self) -> None:
        while self._due():
            try:
                self._look()
            except Exception:
                log.exception("reading ahead failed")

    def _due(self) -> bool:
        """Waits until there is something to decide; the battery is looked at now and then. False: the end."""
        with self._changed:
            watching = BATTERY_EVERY_S if self._reading is not None or self._no_power else None
            seconds = INDEXING_EVERY_S if self._indexing else watching
            self._changed.wait_for(lambda: self._woken or self._closed, seconds)
            self._woken = False
            return not self._closed

    def _look(self) -> None:
        """Begins a shelf; or stops the one that is read when it may not be, is gone, or a newer one has come."""
        model = self._allowed()
        reading = self._reading
        first = None if model is None else self._first(model, reading)
        if reading is not None:
            if first is None or first[0].key != reading:
                self._with.engine().send(StopDocument(_name(reading)))
        elif first is not None:
            self._begin(*first)

    def _allowed(self) -> ReadyModel | None:
        """The model, when there is one and nothing stands against using it now."""
        gate = self._with.gate
        self._indexing = self._with.indexing()
        if self._indexing or self._held or not self._with.enabled() or gate.loading:
            return None
        self._no_power = self._with.on_battery()
        try:
            return None if self._no_power else gate.current()
        except UserError:
            return None

    def _first(self, model: ReadyModel, reading: Key | None) -> tuple[Shelf, Tokens] | None:
        """The first shelf that is to be read, and what of the prompt is computed for it."""
        for shelf in self._shelves():
            key = shelf.key
            if key in self._settled:
                continue
            tokens = self._with.planner.shared_prefix(shelf.ids, model)
            if tokens is not None and (key == reading or not self._read_before(shelf, tokens)):
                return shelf, tokens
            with self._changed:
                self._settled.add(key)
        return None

    def _shelves(self) -> Iterator[Shelf]:
        """Each document alone, the newest first; then those that belong together."""
        documents = [one for one in self._with.library().documents() if one.state != "importing"]
        yield from (Shelf((document,)) for document in sorted(documents, key=lambda document: -document.added))
        by_id = {int(document.id): document for document in documents}
        for ids in self._with.together():
            there = tuple(by_id[document] for document in sorted(ids) if document in by_id)
            if len(there) > 1:
                yield Shelf(there)

    def _read_before(self, shelf: Shelf, tokens: Tokens) -> bool:
        """Whether all of it is kept, from an earlier start or from a conversation; nothing is loaded to find out."""
        if self._with.engine().quote(tokens).new:
            return False
        self._with.emit(DocumentRead(shelf.name, shelf.label, len(tokens), 0, 0.0, 0))
        return True

    def _begin(self, shelf: Shelf, tokens: Tokens) -> None:
        with self._changed:
            self._reading = shelf.key
        self._with.engine().send(PrefillDocument(shelf.name, tokens, shelf.label))

    # --- under the lock -------------------------------------------------------------------------------
    def _is_reading(self, document: str) -> bool:
        return self._reading is not None and _name(self._reading) == document

    def _ended(self, event: DocumentRead | DocumentStopped) -> None:
        """A document that could not be read is not tried again with this model; a stopped one is."""
        assert self._reading is not None
        if isinstance(event, DocumentRead) or event.why != "stopped":
            self._settled.add(self._reading)
        self._reading = None


def _name(key: Key) -> str:
    return shelf_name(document for document, *_ in key)
