"""Everything behind the window and the command line, without Qt: one object that both are thin over.

Methods may be called from any thread. Those that say "returns at once" do their work on threads of the workspace and
report by events, which arrive on worker threads, in the order in which things happened within a turn or a job; the
others are short database work, still not for a GUI's main thread unless they say so.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.core.catalog import ModelCatalog
from app.core.chats import Chats
from app.core.document_actions import DocumentActions, Drop
from app.core.doubted import Doubted
from app.core.embedding import Shelves
from app.core.engine_host import EngineHost
from app.core.events import WorkspaceEvent
from app.core.folders import Folders
from app.core.gate import no_model
from app.core.history import Histories
from app.core.imports import Imports
from app.core.lookups import Lookup, Scope
from app.core.model_fetches import ModelFetches
from app.core.overflow import ways_out
from app.core.paths import Paths
from app.core.planning import Planner
from app.core.pricing import Price, price_of
from app.core.read_ahead import ReadAhead, ReadAheadServices
from app.core.records import MessageId
from app.core.reloads import Reloads
from app.core.revision_log import revision_log
from app.core.revisions import Revisions
from app.core.scoping import Scopes
from app.core.searches import found_passages
from app.core.settings import Settings, StoredSettings
from app.core.states import States
from app.core.turn_parts import TurnServices
from app.core.turns import Turns
from engine.messages import ConversationId, ModelLoaded, StateReport, TurnId
from engine.overflow import OverflowWay
from rag.types import DocumentId

if TYPE_CHECKING:
    from app.core.conversations import ConversationStore
    from engine.client import EngineClient
    from rag import Library

log = logging.getLogger(__name__)


class Workspace:
    """Conversations, documents, models and the engine of one data folder.

    Cheap to make (no database, model or document is opened before it is needed); several processes may have one on the
    same folder. `close` must be called; it stops running work and saves KV state.

    Attributes:
        chats: making, naming, forking, throwing away conversations; revisions: changes to a history; states: KV
            state of conversations; documents: taking them in and throwing them away; folders: followed ones; models:
            those that are known here; fetches: downloads of others; ahead: reading before anybody asks; reloads:
            what takes loading the model again.
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

        `wait_for_vectors`: a question may wait for the embedder to load (command line); else it is looked up by words
        until then. `make_vectors`: imports are followed by embedding. `read_ahead`: documents are read by the model
        before anybody asks, where the preference allows it (window).
        """

        def store() -> ConversationStore:
            return self.conversations

        self.paths = paths.create()
        self._on_event = on_event
        self._lock = threading.RLock()
        self._closed = False
        self._doubted = Doubted(store, self._emit)
        self._stored_settings = StoredSettings(paths.settings, settings, self._emit)
        self._store: ConversationStore | None = None
        self._host = EngineHost(self._from_engine)
        self._shelves = Shelves(paths.library, paths.embedder, wait_for_vectors, self._stored_settings.embedder)
        self._imports = Imports(
            self._shelves, lambda: self.settings, self._emit, make_vectors, lambda: bool(self._turns.running())
        )
        self.folders = Folders(
            lambda: self.library,
            lambda path, done, failed: self._imports.submit(path, None, done, failed),
            lambda document: bool(self.conversations.using(document)),
        )
        self.models = ModelCatalog(paths.models, lambda: self.settings, self._stored_settings.change)
        self.fetches = ModelFetches(self.models, self._emit, self.load_model)
        self._planner = Planner(
            lambda: self.library, self._shelves.search, lambda: self.settings, lambda: self.conversations.dates
        )
        self._histories = Histories(store, self._planner.texts)
        self._turns = Turns(self._services())
        self.ahead = ReadAhead(self._ahead_services(read_ahead))
        self.reloads = Reloads(self._host, self._stored_settings, self._turns, self.load_model)
        log = revision_log(paths.kv, lambda: self.settings)
        self.revisions = Revisions(store, self._host.gate, lambda: self.engine, self._turns.running, log)
        self.states = States(self._host, store, self._histories, paths.kv)
        self.chats = Chats(self._host, store, self._turns, self.revisions, paths.kv, self._dropping, self._emit)
        self.documents = DocumentActions(
            self._shelves,
            self._imports,
            self.folders,
            self._planner,
            store,
            lambda conversation, document: self.chats.attach(conversation, document),
            paths.kv,
            self._dropping,
            self.ahead.wake,
        )
        if self._stored_settings.notice is not None:
            self._emit(self._stored_settings.notice)

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
        return self._host.client

    @property
    def settings(self) -> Settings:
        return self._stored_settings.current

    def update_settings(self, **changes: Any) -> Settings:
        """Stores the changed preferences (fields of Settings). Engine settings act at the next load."""
        changed = self._stored_settings.change(lambda settings: replace(settings, **changes))
        self.ahead.wake()
        return changed

    # --- models -------------------------------------------------------------------------------------
    def load_model(self, path: Path | None = None) -> None:
        """Returns at once; ModelLoading* -> ModelLoaded | ModelFailed. None: the remembered choice; what loads is
        remembered. Raises UserError when there is no choice yet or the file is gone."""
        chosen = path or self.models.chosen
        if chosen is None:
            raise no_model()
        self._host.load(chosen, self.settings.engine, self.paths.kv)

    @property
    def loaded(self) -> ModelLoaded | None:
        """The loaded model; starts nothing."""
        return self._host.loaded

    # --- looking things up --------------------------------------------------------------------------
    @property
    def scopes(self) -> Scopes:
        return self._planner.scopes

    def search(self, query: str, documents: Sequence[int], scope: Scope | None = None, top: int = 10) -> Lookup:
        """What a question would find, without asking it. Takes as long as a search (the embedder may be loading)."""
        searched = self.scopes.of(scope, query, documents)
        hits = self._shelves.found(query, [DocumentId(d) for d in searched.documents], top, searched.pages)
        hits = [hit for hit in hits if searched.has(hit.passage)]
        meaning = any(hit.why.get("vectors") for hit in hits)
        return Lookup(query, searched.label, searched.from_words, meaning, tuple(found_passages(hits)))

    # --- turns --------------------------------------------------------------------------------------
    def ask(
        self,
        conversation: ConversationId,
        text: str,
        overflow: OverflowWay | None = None,
        survey: bool = False,
        is_draft: bool = True,
    ) -> TurnId:
        """Returns at once; events of the turn follow. The draft of the conversation is cleared where `is_draft`.

        While a model loads the turn waits for it. Raises UserError when the conversation is still answering, the text
        is empty, or there is no model. `overflow`: one of the `ways` of its price, if it does not fit; "fork" then ends
        in TurnMoved, "larger" loads the model again. `survey`: every part of the documents is read that the model has
        not before it; a stop keeps the notes, and `continue_answer` goes on.
        """
        return self._turns.ask(conversation, text, overflow, survey, is_draft)

    def edit(
        self, conversation: ConversationId, message: MessageId, text: str, overflow: OverflowWay | None = None
    ) -> TurnId:
        """As `ask`, in the place of that question; it and all behind it are put aside."""
        return self._turns.edit(conversation, message, text, overflow)

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
        loaded. About a millisecond when the documents were counted before, else as long as tokenising them takes."""
        situation, _ = self._histories.situation(conversation, self._host.gate.current(), before=instead_of)
        plan = self._planner.plan(situation, draft, look_up=False)
        moved = self.conversations.cuts.moved(conversation)
        quote = self.engine.quote(plan.tokens, moved.shifts, moved.removal)
        return price_of(plan, quote, ways_out(plan, situation, self.engine, self._planner))

    def close(self, timeout: float = 30.0) -> None:
        """Stops turns and jobs, waits for them to store what they have, saves KV state, closes databases."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._host.will_close()
        self._turns.close(timeout)
        self.folders.close(timeout)
        self.fetches.close(timeout)
        self._imports.close(timeout)
        self.ahead.close(timeout)
        self._host.close(timeout)
        self._shelves.close()
        if self._store is not None:
            self._store.close()

    # --- within -------------------------------------------------------------------------------------
    def _services(self) -> TurnServices:
        return TurnServices(
            store=lambda: self.conversations,
            library=lambda: self.library,
            engine=lambda: self.engine,
            settings=lambda: self.settings,
            gate=self._host.gate,
            events=self._host.events,
            planner=self._planner,
            histories=self._histories,
            emit=self._emit,
            enlarge=lambda conversation, option: self.reloads.enlarge(conversation, option),
        )

    def _ahead_services(self, wanted: bool) -> ReadAheadServices:
        return ReadAheadServices(
            library=lambda: self.library,
            engine=lambda: self.engine,
            gate=self._host.gate,
            planner=self._planner,
            together=lambda: self.conversations.shelves(),
            enabled=lambda: wanted and self.settings.read_ahead,
            indexing=lambda: self._imports.at_work,
            emit=self._emit,
        )

    def _emit(self, event: WorkspaceEvent) -> None:
        """A listener's fault must not end a turn or the engine."""
        self.ahead.hear(event)
        self._doubted.hear(event)
        try:
            self._on_event(event)
        except Exception:
            log.exception("a listener failed on %s", type(event).__name__)

    def _from_engine(self, event: WorkspaceEvent) -> None:
        """On the engine's thread."""
        if isinstance(event, ModelLoaded):
            self.fetches.remember(event.path)
        self._emit(self.states.explained(event) if isinstance(event, StateReport) else event)

    def _dropping(self) -> Drop | None:
        """What frees a state that the engine may have in use."""
        return None if self.loaded is None else lambda conversation: self.states.drop(conversation, disk=True)
