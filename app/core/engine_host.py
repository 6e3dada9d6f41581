"""The engine of a workspace: started when it is first needed, watched, its events passed on in words of the core."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.engine_events import EngineEvents
from app.core.errors import UserError
from app.core.events import Notice
from app.core.gate import ModelGate
from engine.messages import EngineNotice, EngineSettings, Event, LoadModel, ModelFailed, ModelLoaded

if TYPE_CHECKING:
    from engine.client import EngineClient

log = logging.getLogger(__name__)


class EngineHost:
    """Attributes: gate (turns wait there for the model), events (turns open their mailboxes there)."""

    def __init__(self, emit: Callable[[Event | Notice], None]) -> None:
        """`emit` hears, on the engine's thread, what belongs to no turn."""
        self._emit = emit
        self._lock = threading.Lock()
        self._client: EngineClient | None = None
        self._closed = False
        self.gate = ModelGate(lambda: self.client.model)
        self.events = EngineEvents(self._heard)

    @property
    def client(self) -> EngineClient:
        """Its thread is started with it."""
        with self._lock:
            if self._client is None:
                from engine.client import EngineClient

                self._client = EngineClient(self.events.handle)
                self._client.start()
                watch = threading.Thread(target=self._watch, args=(self._client,), name="engine-watch", daemon=True)
                watch.start()
            return self._client

    @property
    def started(self) -> bool:
        return self._client is not None

    @property
    def loaded(self) -> ModelLoaded | None:
        """The loaded model, None where the engine has ended; starts nothing."""
        ready = self.gate.ready
        return ready.handle.info if ready is not None else None

    def load(self, path: Path, settings: EngineSettings, kv: Path) -> None:
        """Returns at once. Raises UserError when the file is gone."""
        if not path.is_file():
            raise UserError("The model file is gone.", f"There is no file {path}.", "Choose another model.")
        self.gate.expect(path)
        self.client.send(LoadModel(path.absolute(), settings, kv))

    def will_close(self) -> None:
        """From now on the end of the engine is no fault."""
        self._closed = True

    def close(self, timeout: float) -> None:
        self.will_close()
        if self._client is not None and not self._client.close(timeout):
            log.warning("the engine did not end in time; state that was not saved will be read again")

    def _heard(self, event: Event) -> None:
        """On the engine's thread."""
        self.gate.handle_event(event)
        if isinstance(event, EngineNotice):
            self._emit(Notice(event.what, event.why, event.next, event.conversation))
        else:
            self._emit(event)

    def _watch(self, engine: EngineClient) -> None:
        """An engine that ends by a fault of ours leaves nobody waiting."""
        engine.wait()
        if self._closed:
            return
        fault = UserError(
            "The engine has stopped.",
            "A fault inside Pagekeep; the log has the details.",
            "Start Pagekeep again; conversations and documents are safe.",
        )
        loading = self.gate.fail(fault)
        self.events.fail_all(fault)
        if loading is not None:
            self._emit(ModelFailed(loading, fault.what, fault.why, fault.next))
        else:
            self._emit(Notice(fault.what, fault.why, fault.next))
