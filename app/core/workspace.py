"""Everything behind the window and the command line, without Qt: one object that both are thin over.

Methods may be called from any thread. Those that say "returns at once" do their work on threads of the
workspace and report by events; the others are short database work, still not for a GUI's main thread unless
they say so. Events arrive on worker threads, in the order in which things happened within a turn or a job.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.core.events import JobId, WorkspaceEvent
from app.core.paths import Paths
from app.core.records import Conversation, Mode, Price
from app.core.settings import Settings
from engine.messages import ConversationId, TurnId

if TYPE_CHECKING:
    from engine.client import EngineClient

    from app.core.catalog import ModelCatalog
    from app.core.conversations import ConversationStore
    from rag import Library


class Workspace:
    """Conversations, documents, models and the engine of one data folder.

    Cheap to make (no database, model or document is opened before it is needed); several processes may have
    one on the same folder. `close` must be called; it stops running work and saves KV state.
    """

    def __init__(
        self, paths: Paths, on_event: Callable[[WorkspaceEvent], None], settings: Settings | None = None
    ):
        """`settings` None: those stored in `paths` (a damaged file gives a Notice event)."""
        raise NotImplementedError

    # --- parts, opened at first use ---------------------------------------------------------------
    @property
    def conversations(self) -> ConversationStore: ...
    @property
    def library(self) -> Library: ...
    @property
    def engine(self) -> EngineClient: ...
    @property
    def models(self) -> ModelCatalog: ...
    @property
    def settings(self) -> Settings: ...

    def update_settings(self, **changes: Any) -> Settings:
        """Stores the changed preferences (fields of Settings). Engine settings act at the next load."""

    # --- models -----------------------------------------------------------------------------------
    def load_model(self, path: Path | None = None) -> None:
        """Returns at once; ModelLoading* -> ModelLoaded | ModelFailed. None: the remembered choice.

        A model that loads is remembered. Raises UserError when there is no choice yet or the file is gone.
        """

    def fetch_model(self, what: str = "starter", load: bool = True) -> JobId:
        """Returns at once; FetchProgress* -> FetchDone | FetchFailed. "starter" or owner/repo/file.gguf."""

    def cancel_fetch(self, job: JobId) -> None: ...

    # --- conversations ----------------------------------------------------------------------------
    def new_conversation(self, title: str = "", documents: tuple[int, ...] = ()) -> Conversation:
        """ConversationChanged follows every change made through the workspace."""

    def attach(self, conversation: ConversationId, document: int) -> Conversation: ...
    def detach(self, conversation: ConversationId, document: int) -> Conversation:
        """No later question looks into it; what the model has read stays in its context."""

    def set_mode(self, conversation: ConversationId, mode: Mode) -> Conversation: ...
    def fork(self, conversation: ConversationId, title: str = "") -> Conversation:
        """A copy of the history that shares all KV pages."""

    # --- turns ------------------------------------------------------------------------------------
    def ask(self, conversation: ConversationId, text: str) -> TurnId:
        """Returns at once; events of the turn follow. The draft of the conversation is cleared."""

    def regenerate(self, conversation: ConversationId) -> TurnId:
        """Another answer to the last question; the old one is kept aside in the store."""

    def continue_answer(self, conversation: ConversationId) -> TurnId:
        """Goes on with a partial, cancelled, failed or length-limited last answer."""

    def cancel(self, turn: TurnId) -> None:
        """Stops the turn in any phase; TurnDone ("cancelled") or TurnWithdrawn follows. Unknown: ignored."""

    def running(self) -> dict[ConversationId, TurnId]:
        """Turns that have not ended, by conversation. Quick, safe on the main thread."""

    def price(self, conversation: ConversationId, draft: str) -> Price:
        """What sending `draft` would cost now. Raises UserError when no model is loaded.

        About a millisecond when the documents were counted before, else as long as tokenising them takes.
        """

    # --- documents --------------------------------------------------------------------------------
    def import_document(
        self, path: Path, password: str | None = None, attach_to: ConversationId | None = None
    ) -> JobId:
        """Returns at once; ImportQueued, ImportProgress* -> ImportDone | ImportFailed | ImportCancelled."""

    def cancel_import(self, job: JobId) -> None: ...

    # --- KV state ---------------------------------------------------------------------------------
    def focus(self, conversation: ConversationId) -> None:
        """The reader looks at it: its turns go first and its state is brought back. Returns at once."""

    def request_state(self, conversation: ConversationId) -> int:
        """Returns a request number at once; a StateReport event with that number follows."""

    def save_state(self, conversation: ConversationId) -> None: ...
    def drop_state(self, conversation: ConversationId, disk: bool = False) -> None: ...

    def close(self, timeout: float = 30.0) -> None:
        """Cancels turns and jobs, waits for them, saves KV state, closes the databases."""
