"""The left column's upper part: search, the list, and what can be done with a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelectionModel, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QMenu, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app.chat.conversations import actions
from app.chat.conversations.model import ConversationModel
from app.chat.conversations.searching import Searching
from app.core.events import ConversationPurged, TurnPhase
from app.core.records import Conversation, SearchHit
from app.services import Services
from app.widgets.cards import label
from app.widgets.rows import RowList
from engine.messages import ConversationId, StateReport

STATES_AT_START = 30
SAVED_MS = 3000  # by then another process has written the state of the answer that it stored
_PHASES = {
    "queued": "waiting",
    "retrieving": "looking",
    "restoring": "restoring",
    "reading": "reading",
    "surveying": "reading all of it",
    "summarising": "summarising",
    "answering": "writing",
}


class ConversationsPanel(QWidget):
    """Signals:
    chosen: a conversation was selected (argument: Conversation).
    new_wanted: the reader wants a new conversation.
    renamed: title or place of a conversation was read anew (argument: Conversation).
    failed: the list could not be read (argument: the exception).
    loaded: the list was read for the first time.
    """

    chosen = Signal(object)
    new_wanted = Signal()
    trash_wanted = Signal()
    renamed = Signal(object)
    failed = Signal(object)
    loaded = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._current: ConversationId | None = None
        self._loaded = False
        self.rows = ConversationModel()
        self.list = RowList(services.theme, "Conversations")
        self.list.setModel(self.rows)
        self.searching = Searching(services, self.rows, self.list)
        self.search = self.searching.field
        self._new = QToolButton(toolTip="New conversation (Ctrl+N)", iconSize=QSize(18, 18))
        self._new.setAccessibleName("New conversation")
        self._trash = QToolButton(toolTip="Trash", iconSize=QSize(16, 16))
        self._trash.setAccessibleName("Trash")
        self._nothing = label("Nothing found.", "muted")
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)
        self._lay_out()
        self._connect()
        self._draw()

    # --- content ----------------------------------------------------------------------------------
    def reload(self) -> None:
        workspace = self._services.workspace
        self._services.tasks.read(lambda: workspace.conversations.list(), self._show_list, self.failed.emit)

    def select(self, conversation: ConversationId) -> None:
        """Makes it the current one, as a click would; the list must hold it."""
        place = self.rows.place(conversation)
        if place is not None:
            self.list.setCurrentIndex(self.rows.index(place))

    def step(self, direction: int) -> None:
        """The next or previous conversation (Ctrl+Tab)."""
        count = self.rows.rowCount()
        if count:
            place = self.rows.place(self._current)
            self.list.setCurrentIndex(self.rows.index(((-1 if place is None else place) + direction) % count))

    @property
    def current(self) -> ConversationId | None:
        return self._current

    def put(self, conversation: Conversation) -> None:
        self.rows.put(conversation)
        self._keep_selection()

    def raise_to_top(self, conversation: ConversationId) -> None:
        """It was used just now; its first question may have given it a name."""
        self.rows.raise_to_top(conversation)
        self._keep_selection()
        store = self._services.workspace
        self._services.tasks.read(lambda: store.conversations.get(conversation), self.renamed.emit)

    def show_phase(self, phase: TurnPhase) -> None:
        self.rows.set_phase(phase.conversation, _PHASES[phase.phase])

    def end_phase(self, conversation: ConversationId) -> None:
        self.rows.set_phase(conversation, "")
        self._services.tasks.read(lambda: self._services.workspace.states.request(conversation), None, _ignore)

    def purged(self, event: ConversationPurged) -> None:
        self.rows.remove(event.conversation)

    def show_state(self, state: StateReport) -> None:
        self.rows.set_state(state)

    def ask_states(self) -> None:
        """Where the state of the latest conversations lives; answers come as StateReport events."""
        self._ask([conversation.id for conversation in self.rows.all()])

    def _ask(self, conversations: Sequence[ConversationId]) -> None:
        workspace = self._services.workspace
        for conversation in conversations[:STATES_AT_START]:
            self._services.tasks.read(lambda id=conversation: workspace.states.request(id), None, _ignore)

    def show_stored(self, conversations: Sequence[Conversation]) -> None:
        """The list as another process left it; what a search found stays on the screen."""
        known = {one.id: one.updated for one in self.rows.all()}
        if not self.searching.is_on() and list(conversations) != self.rows.all():
            self._show_list(conversations)
            changed = [one.id for one in conversations if known.get(one.id) != one.updated]
            for after in (0, SAVED_MS):
                QTimer.singleShot(after, self, lambda: self._ask(changed))

    def _show_list(self, conversations: Sequence[Conversation]) -> None:
        self.rows.show_list(conversations)
        self._show_nothing(False)
        self._keep_selection()
        if not self._loaded:
            self._loaded = True
            self.loaded.emit()

    def _show_hits(self, hits: Sequence[SearchHit]) -> None:
        self.rows.show_hits(hits)
        self._show_nothing(not hits)
        self._keep_selection()

    def _show_nothing(self, nothing: bool) -> None:
        self._stack.setCurrentIndex(1 if nothing else 0)

    # --- actions ----------------------------------------------------------------------------------
    def rename(self) -> None:
        from app.chat.conversations.rename import ask_title

        conversation = self._selected()
        title = ask_title(self, conversation.title) if conversation is not None else None
        if conversation is not None and title:
            store = self._services.workspace
            self._services.tasks.write(lambda: store.chats.rename(conversation.id, title), self.put)

    def delete(self) -> None:
        conversation = self._selected()
        if conversation is None:
            return
        store, place = self._services.workspace, self.rows.place(conversation.id) or 0
        self.rows.remove(conversation.id)
        self._services.tasks.write(lambda: store.chats.trash(conversation.id))
        self._services.toasts.offer_undo(
            f"“{conversation.title}” is in the trash.",
            lambda: self.bring_back(conversation.id),
        )
        neighbour = self.rows.at(min(place, self.rows.rowCount() - 1))
        if neighbour is not None:
            self.select(neighbour.id)
        else:
            self.new_wanted.emit()

    def bring_back(self, conversation: ConversationId) -> None:
        store = self._services.workspace
        self._services.tasks.write(lambda: store.chats.restore(conversation), self._brought_back)

    def _brought_back(self, conversation: Conversation) -> None:
        self.put(conversation)
        self.select(conversation.id)

    def fork(self) -> None:
        conversation = self._selected()
        if conversation is not None:
            workspace = self._services.workspace
            self._services.tasks.write(lambda: workspace.chats.fork(conversation.id), self._brought_back)

    def edit_instructions(self) -> None:
        conversation = self._selected()
        if conversation is not None:
            actions.edit_instructions(self, self._services, conversation, self.renamed.emit)

    def export(self) -> None:
        conversation = self._selected()
        if conversation is not None:
            actions.export(self, self._services, conversation)

    def _selected(self) -> Conversation | None:
        return self.rows.at(self.list.currentIndex().row())

    def _menu(self, place: QPoint) -> None:
        if self._selected() is None:
            return
        menu = QMenu(self)
        menu.addAction("Rename…", QKeySequence("F2"), self.rename)
        menu.addAction("Fork", self.fork)
        menu.addAction("Instructions…", self.edit_instructions)
        menu.addAction("Export as Markdown…", self.export)
        menu.addSeparator()
        menu.addAction("Delete", QKeySequence("Del"), self.delete)
        menu.exec(self.list.viewport().mapToGlobal(place))

    def _picked(self) -> None:
        conversation = self._selected()
        if conversation is not None and conversation.id != self._current:
            self._current = conversation.id
            self.chosen.emit(conversation)

    def _keep_selection(self) -> None:
        """After the rows changed, the current conversation stays marked without being chosen again."""
        place = self.rows.place(self._current)
        selection = self.list.selectionModel()
        selection.blockSignals(True)
        if place is None:
            selection.clear()
        else:
            flag = QItemSelectionModel.SelectionFlag.ClearAndSelect
            selection.setCurrentIndex(self.rows.index(place), flag)
        selection.blockSignals(False)
        self.list.viewport().update()

    # --- building ---------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(14, 0, 8, 0)
        head.addWidget(label("Conversations", "section", wrap=False), 1)
        head.addWidget(self._trash)
        head.addWidget(self._new)
        searching = QHBoxLayout()
        searching.setContentsMargins(10, 0, 10, 4)
        searching.addWidget(self.search)
        self._stack = QStackedWidget()
        self._stack.addWidget(self.list)
        self._stack.addWidget(self._nothing)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(head)
        layout.addLayout(searching)
        layout.addWidget(self._stack, 1)

    def _connect(self) -> None:
        self.list.selectionModel().currentChanged.connect(lambda *_: self._picked())
        self.list.customContextMenuRequested.connect(self._menu)
        self.searching.found.connect(self._show_hits)
        self.searching.ended.connect(self.reload)
        self._new.clicked.connect(self.new_wanted)
        self._trash.clicked.connect(self.trash_wanted)
        self._services.theme.changed.connect(self._draw)
        for keys, act in (("F2", self.rename), ("Del", self.delete)):
            shortcut = QShortcut(QKeySequence(keys), self.list, act)
            shortcut.setContext(Qt.ShortcutContext.WidgetShortcut)

    def _draw(self) -> None:
        self._new.setIcon(self._services.theme.icon("add"))
        self._trash.setIcon(self._services.theme.icon("trash"))


def _ignore(error: Exception) -> None:
    """A state that cannot be asked for (no model yet) is not shown; that is no failure."""
