"""Everything behind the window and the command line, without Qt: one object that both are thin over.

Methods may be called from any thread. Those that say "returns at once" do their work on threads of the
workspace and report by events; the others are short database work, still not for a GUI's main thread unless
they say so. Events arrive on worker threads, in the order in which things happened within a turn or a job.

Over 300 lines: it is the one public face of the core; nearly all methods are one or two lines with their contract.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.core.catalog import ModelCatalog
from app.core.downloads import IsCancelled, OnBytes, never, silent
from app.core.embedding import Shelves
from app.core.engine_events import EngineEvents
from app.core.errors import Cancelled, UserError, as_user_error
from app.core.events import (
    ConversationChanged,
    ConversationPurged,
    FetchDone,
    FetchFailed,
    FetchProgress,
    JobId,
    Notice,
    WorkspaceEvent,
)
from app.core.folders import Folders
from app.core.gate import ModelGate, no_model
from app.core.history import Histories
from app.core.imports import Imports
from app.core.jobs import Job, JobThread
from app.core.kept import documents_of, forget_kept, shelf_state
from app.core.lookups import Lookup, Scope
from app.core.naming import check_free
from app.core.overflow import way_named, ways_out
from app.core.paths import Paths
from app.core.planning import Planner
from app.core.pricing import price_of
from app.core.prompt import history
from app.core.read_ahead import ReadAhead, ReadAheadServices
from app.core.records import Conversation, MessageId, Mode, Price
from app.core.revisions import Revisions
from app.core.scoping import Scopes
from app.core.searches import found_passages
from app.core.settings import Settings, load_settings, save_settings
from app.core.turn_parts import TurnServices
from app.core.turns import Turns
from engine.messages import (
    ConversationId,
    DropState,
    EngineNotice,
    Event,
    Focus,
    ForkState,
    LoadModel,
    ModelFailed,
    ModelLoaded,
    PinState,
    QueryState,
    Reasoning,
    SaveState,
    Tokens,
    TurnId,
)
from engine.overflow import OverflowWay
from rag.types import DocumentId

if TYPE_CHECKING:
    from app.core.conversations import ConversationStore
    from engine.client import EngineClient
    from rag import Document, Library

log = logging.getLogger(__name__)


class Workspace:
    """Conversations, documents, models and the engine of one data folder.

    Cheap to make (no database, model or document is opened before it is needed); several processes may have
    one on the same folder. `close` must be called; it stops running work and saves KV state.
    """

    def __init__(
        self,
        paths: Paths,
        on_event: Callable[[WorkspaceEvent], None],
        settings: Settings | None = None,
        wait_for_vectors: bool = False,
        make_vectors: bool = True,
        read_ahead: bool = False,
    ) -> None:
        """`settings` None: those stored in `paths` (a damaged file gives a Notice event).

        `wait_for_vectors`: a question may wait for the embedder to load (command line); else it is looked up
        by words until the embedder is there. `make_vectors`: imports are followed by embedding.
        `read_ahead`: documents are read by the model before anybody asks, where the preference allows it (window).
        """
        self.paths = paths.create()
        self._on_event = on_event
        self._lock = threading.RLock()
        self._requests = itertools.count(1)
        self._closed = False
        stored, notice = load_settings(paths.settings)
        self._settings = stored if settings is None else settings
        self._store: ConversationStore | None = None
        self._engine: EngineClient | None = None
        self._gate = ModelGate(lambda: self.engine.model)
        self._router = EngineEvents(self._engine_event)
        self._shelves = Shelves(paths.library, paths.embedder, wait_for_vectors, self._settings.embedder)
        self._imports = Imports(
            self._shelves, lambda: self._settings, self._emit, make_vectors, lambda: bool(self._turns.running())
        )
        self.folders = Folders(
            lambda: self.library,
            lambda path, done, failed: self._imports.submit(path, None, done, failed),
            lambda document: bool(self.conversations.using(document)),
        )
        self._fetches = JobThread("fetch")
        self._catalog = ModelCatalog(paths.models, lambda: self._settings, self._change_settings)
        self._planner = Planner(
            lambda: self.library, self._shelves.search, lambda: self._settings, lambda: self.conversations.dates
        )
        self._histories = Histories(lambda: self.conversations, self._planner.texts)
        self._turns = Turns(self._services())
        self.revisions = Revisions(lambda: self.conversations, self._gate, lambda: self.engine, self._turns.running)
        self._ahead = ReadAhead(self._ahead_services()) if read_ahead else None
        if notice is not None:
            self._emit(notice)

    # --- parts, opened at first use -----------------------------------------------------------------
    @property
    def conversations(self) -> ConversationStore:
        """Raises UserError when the file is of a newer version or damaged."""
        with self._lock:
            if self._store is None:
                from app.core.conversations import ConversationStore

                self._store = ConversationStore(self.paths.conversations)
            return self._store

    @property
    def library(self) -> Library:
        return self._shelves.library()

    @property
    def engine(self) -> EngineClient:
        """Its thread is started with it."""
        with self._lock:
            if self._engine is None:
                from engine.client import EngineClient

                self._engine = EngineClient(self._router.handle)
                self._engine.start()
                watch = threading.Thread(target=self._watch, args=(self._engine,), name="engine-watch", daemon=True)
                watch.start()
            return self._engine

    @property
    def models(self) -> ModelCatalog:
        return self._catalog

    @property
    def settings(self) -> Settings:
        return self._settings

    def update_settings(self, **changes: Any) -> Settings:
        """Stores the changed preferences (fields of Settings). Engine settings act at the next load."""
        changed = self._change_settings(lambda settings: replace(settings, **changes))
        self._wake_read_ahead()
        return changed

    # --- models -------------------------------------------------------------------------------------
    def load_model(self, path: Path | None = None) -> None:
        """Returns at once; ModelLoading* -> ModelLoaded | ModelFailed. None: the remembered choice.

        A model that loads is remembered. Raises UserError when there is no choice yet or the file is gone.
        """
        chosen = path or self._catalog.chosen
        if chosen is None:
            raise no_model()
        if not chosen.is_file():
            raise UserError("The model file is gone.", f"There is no file {chosen}.", "Choose another model.")
        self._gate.expect(chosen)
        self.engine.send(LoadModel(chosen.absolute(), self._settings.engine, self.paths.kv))

    @property
    def loaded(self) -> ModelLoaded | None:
        """The loaded model; starts nothing."""
        handle = self._engine.model if self._engine is not None else None
        return handle.info if handle is not None else None

    def set_reasoning(self, on: bool) -> None:
        """For all later answers; the model is loaded again, state is kept. Raises UserError while one is written."""
        if self._turns.running():
            why = "An answer is being written, and the model has to be loaded again."
            raise UserError("Reasoning cannot be switched now.", why, "Wait for the answer, or stop it.")
        wanted: Reasoning = "on" if on else "off"
        self._change_settings(lambda s: replace(s, engine=replace(s.engine, reasoning=wanted)))
        self.load_model(self.loaded.path if self.loaded is not None else None)

    def fetch_model(self, what: str = "starter", load: bool = True) -> JobId:
        """Returns at once; FetchProgress* -> FetchDone | FetchFailed. "starter" or owner/repo/file.gguf."""
        return self._fetches.submit(lambda job: self._fetch(job, what, load))

    def cancel_fetch(self, job: JobId) -> None:
        self._fetches.cancel(job)

    # --- conversations ------------------------------------------------------------------------------
    def new_conversation(self, title: str = "", documents: tuple[int, ...] = ()) -> Conversation:
        """ConversationChanged follows every change made through the workspace."""
        return self._changed(self.conversations.create(title, documents))

    def rename(self, conversation: ConversationId, title: str) -> Conversation:
        """Raises UserError when another conversation has that title."""
        check_free((c for c in self.conversations.list() if c.id != conversation), title)
        return self._changed(self.conversations.rename(conversation, title))

    def attach(self, conversation: ConversationId, document: int) -> Conversation:
        return self._changed(self.conversations.attach(conversation, document))

    def detach(self, conversation: ConversationId, document: int) -> Conversation:
        """No later question looks into it; what the model has read stays in its context."""
        return self._changed(self.conversations.detach(conversation, document))

    def set_mode(self, conversation: ConversationId, mode: Mode) -> Conversation:
        return self._changed(self.conversations.set_mode(conversation, mode))

    def set_scope(self, conversation: ConversationId, scope: Scope | None) -> Conversation:
        """Where its questions look from now on; None: all its documents."""
        return self._changed(self.conversations.set_scope(conversation, scope))

    @property
    def scopes(self) -> Scopes:
        """Chapters and pages of documents, as scopes."""
        return self._planner.scopes

    def search(self, query: str, documents: Sequence[int], scope: Scope | None = None, top: int = 10) -> Lookup:
        """What a question would find, without asking it. Takes as long as a search (the embedder may be loading)."""
        searched = self.scopes.of(scope, query, documents)
        hits = self._shelves.found(query, [DocumentId(d) for d in searched.documents], top, searched.pages)
        hits = [hit for hit in hits if searched.has(hit.passage)]
        meaning = any(hit.why.get("vectors") for hit in hits)
        return Lookup(query, searched.label, searched.from_words, meaning, tuple(found_passages(hits)))

    def trash(self, conversation: ConversationId) -> Conversation:
        """Undone by `restore`; its turn is stopped."""
        turn = self._turns.running().get(conversation)
        if turn is not None:
            self._turns.cancel(turn)
        return self._changed(self.conversations.trash(conversation))

    def restore(self, conversation: ConversationId) -> Conversation:
        return self._changed(self.conversations.restore(conversation))

    def purge(self, conversation: ConversationId) -> None:
        """Out of the trash for good, KV state included."""
        self.conversations.purge(conversation)
        if self._has_model():
            self.drop_state(conversation, disk=True)
        else:
            forget_kept(self.paths.kv, lambda name: name == conversation, None)
        self._emit(ConversationPurged(conversation))

    def fork(self, conversation: ConversationId, title: str = "", last: MessageId | None = None) -> Conversation:
        """A copy of the history, up to the message `last`, that shares all KV pages."""
        if last is not None:
            return self._changed(self.revisions.fork_at(conversation, last, title))
        copy = self.conversations.fork(conversation, title)
        if self._engine is not None:
            self._engine.send(ForkState(conversation, copy.id))
        return self._changed(copy)

    # --- turns --------------------------------------------------------------------------------------
    def ask(
        self, conversation: ConversationId, text: str, overflow: OverflowWay | None = None, survey: bool = False
    ) -> TurnId:
        """Returns at once; events of the turn follow. The draft of the conversation is cleared.

        While a model loads the turn waits for it. Raises UserError when the conversation is still answering,
        the text is empty, or there is no model. `overflow`: how to go on where the question does not fit (the
        `ways` of its price); "fork" ends in TurnMoved, "larger" loads the model again with a larger context.
        `survey`: every part of the documents is read that the model has not before it, step by step; a stop keeps the
        notes, and `continue_answer` goes on.
        """
        if overflow == "larger":
            self._enlarge(conversation, text)
            return self._turns.ask(conversation, text)
        return self._turns.ask(conversation, text, overflow, survey)

    def edit(self, conversation: ConversationId, message: MessageId, text: str) -> TurnId:
        """Asks that question again in other words; it and all behind it are put aside. Returns at once."""
        return self._turns.edit(conversation, message, text)

    def regenerate(self, conversation: ConversationId) -> TurnId:
        """Another answer to the last question; the old one is kept aside in the store."""
        return self._turns.regenerate(conversation)

    def continue_answer(self, conversation: ConversationId) -> TurnId:
        """Goes on with a partial, cancelled, failed or length-limited last answer."""
        return self._turns.continue_answer(conversation)

    def cancel(self, turn: TurnId) -> None:
        """Stops the turn in any phase; TurnDone ("cancelled") or TurnWithdrawn follows. Unknown: ignored."""
        self._turns.cancel(turn)

    def running(self) -> dict[ConversationId, TurnId]:
        """Turns that have not ended, by conversation. Quick, safe on the main thread."""
        return self._turns.running()

    def price(self, conversation: ConversationId, draft: str, instead_of: MessageId | None = None) -> Price:
        """What sending `draft` would cost now, or asking it instead of that question. Raises UserError when no model is
        loaded.

        About a millisecond when the documents were counted before, else as long as tokenising them takes.
        """
        situation, _ = self._histories.situation(conversation, self._gate.current(), before=instead_of)
        plan = self._planner.plan(situation, draft, look_up=False)
        moved = self.conversations.cuts.moved(conversation)
        quote = self.engine.quote(plan.tokens, moved.shifts, moved.removal)
        return price_of(plan, quote, ways_out(plan, situation.messages, self.engine))

    # --- documents ----------------------------------------------------------------------------------
    def import_document(
        self, path: Path, password: str | None = None, attach_to: ConversationId | None = None
    ) -> JobId:
        """Returns at once; ImportQueued, ImportProgress* -> ImportDone | ImportFailed | ImportCancelled.

        ImportDone comes when questions can be asked; vectors follow in the background, then DocumentReady.
        """

        def done(document: Document) -> None:
            self.folders.took_in(path, document)
            if attach_to is not None:
                self.attach(attach_to, int(document.id))

        return self._imports.submit(path, password, done)

    def recognise(self, document: int, pages: Sequence[int] | None = None) -> JobId:
        """Reads scanned pages, by default all; returns at once. Events as of an import. `rag.recognise.available` tells
        whether the packages for it are installed."""
        known = self.library.document(DocumentId(document))
        return self._imports.recognise(known, pages, lambda read: self._planner.texts.forget(int(read.id)))

    def cancel_import(self, job: JobId) -> None:
        self._imports.cancel(job)

    def trash_document(self, document: int) -> None:
        """Undone by `restore_document`. Reading it ahead is stopped."""
        self.library.trash(DocumentId(document))
        self._wake_read_ahead()

    def restore_document(self, document: int) -> None:
        self.library.restore(DocumentId(document))
        self._wake_read_ahead()

    def purge_document(self, document: int) -> None:
        """Out of the trash for good; of its KV only what conversations use stays."""
        self.library.purge(DocumentId(document))
        self.conversations.dates.forget(document)
        drop = None
        if self._has_model():
            self.drop_state(shelf_state([document]), disk=True)
            drop = lambda name: self.drop_state(ConversationId(name), disk=True)  # noqa: E731
        forget_kept(self.paths.kv, lambda name: document in documents_of(name), drop)

    def stop_reading_ahead(self) -> None:
        """What was read is kept. It goes on with `go_on_reading_ahead`, or when a model is loaded or a new document
        comes. Returns at once.
        """
        if self._ahead is not None:
            self._ahead.hold()

    def go_on_reading_ahead(self) -> None:
        """Continues where it was stopped. Returns at once."""
        if self._ahead is not None:
            self._ahead.go_on()

    def resume_imports(self) -> None:
        """Goes on with what a quit or crash cut short; for after the start. Returns at once."""
        self._imports.resume()

    def fetch_embedder(self, on_bytes: OnBytes = silent, cancelled: IsCancelled = never) -> None:
        """Blocking, for the command line; imports fetch it by themselves. Raises UserError, Cancelled."""
        self._shelves.fetch_embedder(on_bytes, cancelled)

    # --- KV state -----------------------------------------------------------------------------------
    def focus(self, conversation: ConversationId) -> None:
        """The reader looks at it: its turns go first and its state is brought back from disk."""
        shifts = self.conversations.cuts.moved(conversation).shifts
        self.engine.send(Focus(conversation, self._tokens(conversation), shifts))

    def request_state(self, conversation: ConversationId) -> int:
        """Returns a request number; a StateReport event with that number follows."""
        request = next(self._requests)
        shifts = self.conversations.cuts.moved(conversation).shifts
        self.engine.send(QueryState(request, conversation, self._tokens(conversation), shifts))
        return request

    def save_state(self, conversation: ConversationId) -> None:
        self.engine.send(SaveState(conversation))

    def pin(self, conversation: ConversationId, pinned: bool = True) -> None:
        """Its pages stay in memory when idle and are never evicted from disk."""
        self.engine.send(PinState(conversation, pinned))

    def operations(self, conversation: ConversationId, last: int = 40) -> list[dict[str, Any]]:
        """What was done with its KV state, oldest first (engine.kv.log); complete after `request_state`."""
        from engine.kv.log import read_log

        return read_log(self.paths.kv, last, "info", conversation)

    def drop_state(self, conversation: ConversationId, disk: bool = False) -> None:
        """Forgets its KV in memory; `disk`: also what no other conversation uses there."""
        self.engine.send(DropState(conversation, disk))

    def close(self, timeout: float = 30.0) -> None:
        """Stops turns and jobs, waits for them to store what they have, saves KV state, closes databases."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._turns.close(timeout)
        self.folders.close(timeout)
        self._fetches.close(timeout)
        self._imports.close(timeout)
        if self._ahead is not None:
            self._ahead.close(timeout)
        if self._engine is not None and not self._engine.close(timeout):
            log.warning("the engine did not end in time; state that was not saved will be read again")
        self._shelves.close()
        if self._store is not None:
            self._store.close()

    # --- within -------------------------------------------------------------------------------------
    def _enlarge(self, conversation: ConversationId, text: str) -> None:
        """Raises UserError where a larger context is not to be had. State is kept, but for LongRoPE models:
        there the other set of factors may count, and all is computed again."""
        others = [c for c in self._turns.running() if c != conversation]
        if others:
            why = "Another conversation is being answered, and the model has to be loaded again."
            raise UserError("The context cannot be changed now.", why, "Wait for that answer, or stop it.")
        option = way_named(self.price(conversation, text).ways, "larger")
        self._change_settings(lambda s: replace(s, engine=replace(s.engine, context=option.context)))
        self.load_model(self._gate.current().handle.info.path)

    def _services(self) -> TurnServices:
        return TurnServices(
            store=lambda: self.conversations,
            library=lambda: self.library,
            engine=lambda: self.engine,
            settings=lambda: self._settings,
            gate=self._gate,
            events=self._router,
            planner=self._planner,
            histories=self._histories,
            emit=self._emit,
        )

    def _ahead_services(self) -> ReadAheadServices:
        return ReadAheadServices(
            library=lambda: self.library,
            engine=lambda: self.engine,
            gate=self._gate,
            planner=self._planner,
            together=lambda: self.conversations.shelves(),
            enabled=lambda: self._settings.read_ahead,
            emit=self._emit,
        )

    def _wake_read_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.wake()

    def _emit(self, event: WorkspaceEvent) -> None:
        """A listener's fault must not end a turn or the engine."""
        if self._ahead is not None:
            self._ahead.hear(event)
        try:
            self._on_event(event)
        except Exception:
            log.exception("a listener failed on %s", type(event).__name__)

    def _changed(self, conversation: Conversation) -> Conversation:
        self._emit(ConversationChanged(conversation))
        return conversation

    def _engine_event(self, event: Event) -> None:
        """On the engine's thread."""
        self._gate.handle_event(event)
        if isinstance(event, EngineNotice):
            self._emit(Notice(event.what, event.why, event.next))
            return
        if isinstance(event, ModelLoaded):
            self._fetches.submit(lambda job: self._catalog.remember(event.path))
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
        loading = self._gate.fail(fault)
        self._router.fail_all(fault)
        if loading is not None:
            self._emit(ModelFailed(loading, fault.what, fault.why, fault.next))
        else:
            self._emit(Notice(fault.what, fault.why, fault.next))

    def _has_model(self) -> bool:
        return self.loaded is not None

    def _tokens(self, conversation: ConversationId) -> Tokens:
        """The history in the loaded model's ids; empty without a model."""
        try:
            model = self._gate.current()
        except UserError:
            return Tokens()
        situation, _ = self._histories.situation(conversation, model)
        return history(situation.messages + situation.unanswered)

    def _change_settings(self, change: Callable[[Settings], Settings]) -> Settings:
        """Applied to what is stored now: another process may have changed other preferences."""
        with self._lock:
            stored, _ = load_settings(self.paths.settings)
            save_settings(self.paths.settings, change(stored))
            self._settings = change(self._settings)
            return self._settings

    def _fetch(self, job: Job, what: str, load: bool) -> None:
        try:
            path = self._catalog.fetch(
                what, lambda done, total: self._emit(FetchProgress(job.id, what, done, total)), job.cancelled
            )
        except Cancelled:
            self._emit(FetchFailed(job.id, what, None))
        except Exception as error:
            self._emit(FetchFailed(job.id, what, as_user_error(error)))
        else:
            self._emit(FetchDone(job.id, what, path))
            if load:
                self.load_model(path)
