"""A workspace for one command: events come through a queue, progress goes to standard error."""

from __future__ import annotations

import math
import queue
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.cli.console import Console
from app.cli.notices import of_command
from app.core.errors import Cancelled, UserError
from app.core.events import (
    FetchProgress,
    ImportDone,
    ImportFailed,
    ImportProgress,
    Notice,
    WorkspaceEvent,
)
from app.core.import_words import import_words
from app.core.paths import Paths
from app.core.settings import Settings, load_settings
from app.core.starter import STARTER, starter_path
from app.core.workspace import Workspace
from engine.messages import ConversationId, EngineStats, ModelFailed, ModelLoaded, ModelLoading, StateReport
from rag.sizes import size_text
from rag.types import Document, IngestProgress

WAIT_S = 0.2  # how soon an interrupt is seen
SAVE_S = 30.0  # as long as closing waits for the engine


class Session:
    """What commands do with a workspace, one thing after another."""

    def __init__(self, console: Console, settings: Settings | None = None) -> None:
        self.console = console
        self.notices: list[Notice] = []
        self.stats: EngineStats | None = None  # the engine's last
        self._names: dict[int, str] = {}
        self._events: queue.SimpleQueue[WorkspaceEvent] = queue.SimpleQueue()
        paths = Paths.default()
        self.workspace = Workspace(paths, self._events.put, settings, wait_for_vectors=True, make_vectors=False)

    def events(self, seconds: float = math.inf) -> Iterator[WorkspaceEvent]:
        """As they come, for so long; notices and progress are shown on the way."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                event = self._events.get(timeout=WAIT_S)
            except queue.Empty:
                continue
            self._show(event)
            yield event

    def import_file(self, path: Path, password: str | None = None) -> Document:
        """Takes a document in as far as its words. Raises the UserError of a failed import."""
        job = self.workspace.documents.add(path, password)
        try:
            for event in self.events():
                if isinstance(event, ImportDone) and event.job == job:
                    return event.document
                if isinstance(event, ImportFailed) and event.job == job:
                    raise event.error
        except KeyboardInterrupt:
            self.workspace.documents.cancel(job)
            raise
        raise AssertionError("events never end")

    def document(self, name: str) -> Document:
        """A document of the library by name or path; a file that is not there yet is taken in."""
        from rag.errors import DocumentError

        try:
            return self.workspace.library.find(name)
        except DocumentError:
            if not Path(name).is_file():
                raise
            return self.import_file(Path(name))

    def named(self, name: str) -> Document:
        """The file of that name, taken in; where there is none, the library's document of that name."""
        from rag.errors import DocumentError

        path = Path(name)
        if not path.exists():
            with suppress(DocumentError):
                path = self.workspace.library.find(name).path
        return self.import_file(path)

    def model_path(self, wanted: str | None) -> Path:
        """The wanted model, the remembered one, or the starter model, which is fetched when there is none."""
        models = self.workspace.models
        if wanted is not None and wanted != "starter":
            return models.resolve(wanted)
        chosen = None if wanted else models.chosen
        if chosen is None and not starter_path(self.workspace.paths.models).is_file():
            size = size_text(STARTER.download_bytes)
            self.console.note(f"No model is there yet: the starter model is fetched once ({size}). Ctrl-C stops it.")
        return chosen or self.fetch("starter")

    def fetch(self, what: str) -> Path:
        def shown(done: int, total: int) -> None:
            self.console.progress(_bytes_line(what, done, total))

        path = self.workspace.models.fetch(what, shown)
        self.console.clear()
        return path

    def wait_for_model(self) -> ModelLoaded:
        for event in self.events():
            if isinstance(event, ModelLoaded):
                return event
            if isinstance(event, ModelFailed):
                raise UserError(event.what, event.why, event.next)
        raise AssertionError("events never end")

    def show_import(self, progress: IngestProgress, more: str = "") -> None:
        if progress.phase != "done":
            self.console.progress(f"{self.name_of(progress)}: {import_words(progress)}{more}")

    def name_of(self, progress: IngestProgress) -> str:
        """The document's name; its stored copy is named otherwise."""
        document = progress.document_id
        if document is None:
            return progress.path.name
        if document not in self._names:
            self._names[document] = self.workspace.library.document(document).name
        return self._names[document]

    def saved(self, conversation: ConversationId) -> None:
        """Waits until its state is saved, or that was refused; notices of that are shown."""
        states = self.workspace.states
        states.save(conversation)
        request = states.request(conversation)
        for event in self.events(SAVE_S):
            if isinstance(event, StateReport) and event.request == request:
                return

    def notice(self, what: str, why: str, next: str) -> None:
        self._show(Notice(what, why, next))

    def _show(self, event: WorkspaceEvent) -> None:
        if isinstance(event, Notice):
            event = replace(self.workspace.chats.about(event), next=of_command(event.next))
            self.notices.append(event)
            self.console.note(event.text)
        elif isinstance(event, EngineStats):
            self.stats = event
        elif isinstance(event, ImportProgress):
            self.show_import(event.progress)
        elif isinstance(event, FetchProgress):
            self.console.progress(_bytes_line(event.what, event.done, event.total))
        elif isinstance(event, ModelLoading):
            self.console.progress(f"Loading {event.path.name}: {event.stage}")


@contextmanager
def open_session(console: Console, settings: Settings | None = None) -> Iterator[Session]:
    """Closed in any case: turns stopped, state saved."""
    session = Session(console, settings)
    try:
        yield session
    except Cancelled as stopped:
        raise KeyboardInterrupt from stopped
    finally:
        session.workspace.close()


def stored_settings(change: Callable[[Settings], Settings]) -> Settings:
    """The reader's preferences with those of this command line on top; the latter are not stored."""
    settings, _ = load_settings(Paths.default().settings)
    return change(settings)


def with_engine_options(settings: Settings, **options: Any) -> Settings:
    """Options that were given (not None) replace those of the engine."""
    given = {key: value for key, value in options.items() if value is not None}
    return replace(settings, engine=replace(settings.engine, **given))


def engine_options(options: Namespace) -> dict[str, Any]:
    """The fields of EngineSettings that a command line names; None where it does not. EngineError: not a number of
    layers."""
    from engine.placement_options import parse_layers

    layers, rules = options.gpu_layers, options.override_tensor
    return {
        "context": options.ctx,
        "threads": options.threads,
        "prefill_chunk": options.batch,
        "micro_batch": options.ubatch,
        "speculation": None if options.speculation is None else options.speculation == "on",
        "kv_type_k": options.kv,
        "kv_type_v": options.kv_v or options.kv,
        "backend": options.backend,
        "gpu_layers": None if layers is None else parse_layers(layers),
        "cpu_moe": options.cpu_moe,
        "n_cpu_moe": options.n_cpu_moe,
        "tensor_overrides": None if rules is None else tuple(rules),
    }


def _bytes_line(what: str, done: int, total: int) -> str:
    return f"Downloading {what}: {size_text(done)}{f' of {size_text(total)}' if total else ''}"
