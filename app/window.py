"""The main window: a frame that places the features and passes signals between them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QDesktopServices
from PySide6.QtWidgets import QApplication, QMainWindow, QSplitter, QTabWidget, QVBoxLayout, QWidget

from app.cache_panel.panel import CachePanel
from app.chat.chips import ChipFace, chip_faces
from app.chat.controller import ChatController
from app.chat.conversations.panel import ConversationsPanel
from app.chat.panel import ChatPanel
from app.core import events
from app.core.lookups import FoundPassage
from app.core.records import Conversation, Message, StoredCitation
from app.frame.dialogs import Dialogs
from app.frame.elsewhere import Elsewhere
from app.frame.focus import move_focus
from app.frame.menus import add_shortcuts, menu_button
from app.frame.model_state import ModelState
from app.frame.reading import Reading
from app.frame.scopes import ScopeChooser
from app.frame.state import WindowState, blob_of, text_of
from app.frame.status import StatusBar
from app.frame.wiring import connect
from app.library.panel import LibraryPanel
from app.reader.page_view import Place
from app.reader.panel import ReaderPanel
from app.search_panel.panel import SearchPanel
from app.services import Services
from app.timing_panel.panel import TimingPanel
from app.widgets.drop import DropTarget

READER, SEARCH, CACHE, TIMING = range(4)
DEFAULT_SIZES = ((250, 560, 470), (380, 320))


class Window(QMainWindow):
    """Signals: closing (the reader closes the window; it is hidden already); moved (to a conversation)."""

    closing = Signal()
    moved = Signal()

    def __init__(self, services: Services, state: WindowState, host: QWidget) -> None:
        super().__init__()
        self.services = services
        self._state = state
        self._restored = False
        self.conversations = ConversationsPanel(services)
        self.library = LibraryPanel(services)
        self.chat = ChatPanel(services)
        self.controller = ChatController(services, self.chat, self._chips)
        self.reader = ReaderPanel(services)
        self.search = SearchPanel(services)
        self.cache = CachePanel(services)
        self.timing = TimingPanel(services)
        self.status = StatusBar(services)
        self.dialogs = Dialogs(services, self)
        self.scopes = ScopeChooser(services, self)
        self.elsewhere = Elsewhere(services, self)
        self.reading = Reading(self, state.read)
        self.model = ModelState(self)
        self.tabs = QTabWidget()
        self._columns = QSplitter(Qt.Orientation.Horizontal)
        self._sidebar = QSplitter(Qt.Orientation.Vertical)
        self._host = host
        self._lay_out()
        connect(self)
        add_shortcuts(self)
        self._restore_frame()
        services.toasts.stay_above(self.chat.foot)

    # --- start ------------------------------------------------------------------------------------
    def start(self) -> None:
        """Reads lists and loads the model; called after the first paint."""
        self.elsewhere.start()
        self.conversations.reload()
        self.library.reload()
        self.model.start()
        workspace = self.services.workspace
        self.services.tasks.read(lambda: (workspace.documents.resume(), workspace.folders.watch()))

    def conversations_loaded(self) -> None:
        wanted = self._state.conversation
        if self.conversations.rows.place(wanted) is not None:
            self.controller.screen.set_place(wanted, self._state.place)
            self.conversations.select(wanted)
        elif (first := self.conversations.rows.at(0)) is not None:
            self.conversations.select(first.id)
        else:
            self.new_conversation()
        if self._state.document is not None:
            self.reading.stay(wanted)
            self.reader.open(self._state.document, Place(self._state.page, self._state.fraction))
        self._restored = True

    # --- actions ----------------------------------------------------------------------------------
    def new_conversation(self) -> None:
        """The shown conversation when it has nothing in it yet, else another one that has not, else a new one."""
        self.chat.composer.editor.setFocus()
        shown = self.controller.conversation
        listed = shown is not None and self.conversations.rows.place(shown.id) is not None
        untouched = listed and self.controller.screen.is_empty() and not (shown.title_fixed or shown.documents)
        if untouched:
            return
        workspace = self.services.workspace
        self.services.tasks.write(lambda: workspace.chats.fresh(), self.show_new)

    def show_new(self, conversation: Conversation) -> None:
        self.conversations.put(conversation)
        self.conversations.select(conversation.id)
        self.chat.composer.editor.setFocus()

    def open_document(self, document: int) -> None:
        self.tabs.setCurrentIndex(READER)
        self.reader.open(document)

    def open_citation(self, citation: StoredCitation) -> None:
        if citation.document_id is not None and citation.ranges:
            self.tabs.setCurrentIndex(READER)
            self.reader.open(citation.document_id, None, citation.ranges)

    def open_found(self, found: FoundPassage) -> None:
        self.tabs.setCurrentIndex(READER)
        self.reader.open(found.document_id, None, found.ranges)

    # --- events -----------------------------------------------------------------------------------
    def conversation_opened(self, conversation: str, messages: tuple[Message, ...]) -> None:
        self.cache.show_conversation(conversation)
        self.cache.show_turn(next((m for m in reversed(messages) if m.role == "assistant"), None))
        self.timing.show_conversation(conversation, messages)
        self.search.put(self.controller.conversation)
        self.search.show_conversation(conversation, messages, self.controller.screen.elsewhere)
        self.reading.follow()
        self.moved.emit()

    def turn_started(self, event: events.TurnStarted) -> None:
        self.timing.add_question(event.user_message)
        self.search.add_question(event.user_message)
        self.conversations.raise_to_top(event.conversation)

    def turn_done(self, event: events.TurnDone) -> None:
        self.timing.add(event.message)
        if event.conversation == self.controller.on_screen:
            self.cache.show_turn(event.message)
        self.search.add_answer(event.message)
        QApplication.alert(self)

    def turn_ended(self, conversation: str) -> None:
        self.conversations.end_phase(conversation)
        self.cache.refresh()
        self.search.end_turn(conversation)

    def put_conversation(self, conversation: Conversation) -> None:
        self.conversations.put(conversation)
        self.controller.put(conversation)
        self.search.put(self.controller.conversation)

    def offer_link(self, address: str) -> None:
        """The reader sees where a link of an answer leads before it is opened."""
        if address.startswith(("http://", "https://")):
            self.services.toasts.say(address, "Open", lambda: QDesktopServices.openUrl(QUrl(address)))

    def notice(self, notice: events.Notice) -> None:
        self.services.tasks.read(lambda: self.services.workspace.chats.about(notice).text, self.services.toasts.say)

    # --- closing ----------------------------------------------------------------------------------
    def state(self) -> WindowState:
        """Everything needed to look the same next time."""
        visit = self.reader.current()
        shown = self.controller.conversation
        splitters = (self._columns, self._sidebar)
        return WindowState(
            geometry=text_of(self.saveGeometry()),
            splitters=tuple(text_of(splitter.saveState()) for splitter in splitters),
            tab=self.tabs.currentIndex(),
            theme=self.services.theme.choice,
            conversation=shown.id if shown is not None else "",
            place=self.chat.transcript.place(),
            document=visit.document if visit is not None else None,
            page=visit.place.page if visit is not None else 0,
            fraction=visit.place.fraction if visit is not None else 0.0,
            zoom=0.0 if self.reader.view.fits_width else self.reader.view.zoom,
            outline=self.reader.toolbar.outline.isChecked(),
            read=self.reading.state(),
        )

    def focusNextPrevChild(self, forward: bool) -> bool:
        columns = (self.conversations, self.library, self.chat, self.services.toasts, self.tabs)
        return move_focus((*columns, self.status), forward)

    def changeEvent(self, event: QEvent) -> None:
        """Who comes back from a terminal may have asked there."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow() and self._restored:
            self.elsewhere.look()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.controller.leave()
        self.hide()
        self.closing.emit()
        super().closeEvent(event)

    # --- building ---------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        self.setWindowTitle("Pagekeep")
        self.setWindowIcon(self.services.theme.icon("pagekeep", "text"))
        sidebar = QWidget()
        sidebar.setObjectName("sidebar")
        sidebar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        inside = QVBoxLayout(sidebar)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.addWidget(self._sidebar)
        self.conversations.setMinimumHeight(170)
        for part in (self.conversations, self.library):
            self._sidebar.addWidget(part)
        for name in ("Reader", "Search", "Cache", "Timing"):
            self.tabs.addTab(getattr(self, name.lower()), name)
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.tabBar().setAccessibleName("Panels")
        self.tabs.setCornerWidget(menu_button(self), Qt.Corner.TopRightCorner)
        for part, least in ((sidebar, 190), (self.chat, 340), (self.tabs, 300)):
            part.setMinimumWidth(least)
            self._columns.addWidget(part)
        for column, stretch in enumerate((0, 3, 2)):
            self._columns.setStretchFactor(column, stretch)
        for splitter, sizes in ((self._columns, DEFAULT_SIZES[0]), (self._sidebar, DEFAULT_SIZES[1])):
            splitter.setChildrenCollapsible(False)
            splitter.setHandleWidth(1)
            splitter.setSizes(list(sizes))
        column = QVBoxLayout(self._host)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._columns)
        self.setCentralWidget(self._host)
        self.setStatusBar(self.status)
        self._drop = DropTarget(self.services.theme, self)
        self._drop.dropped.connect(self.library.importing.add)

    def _chips(self, documents: Sequence[int]) -> tuple[ChipFace, ...]:
        rows = self.library.rows  # before it was read every document would be gone
        return chip_faces(documents, rows.names(), rows.trashed()) if rows.is_read else ()

    def search_in_document(self) -> None:
        self.tabs.setCurrentIndex(READER)
        self.reader.search_in_document()

    def conversation_chosen(self, conversation: Conversation) -> None:
        self.reading.leave()
        self.library.importing.set_conversation(conversation.id)
        self.controller.open(conversation)

    def ask_about(self, document: object) -> None:
        self.controller.changing.attach(document.id)
        self.chat.composer.editor.setFocus()

    def _restore_frame(self) -> None:
        self.resize(1280, 800)
        if self._state.geometry:
            self.restoreGeometry(blob_of(self._state.geometry))
        for splitter, text in zip((self._columns, self._sidebar), self._state.splitters, strict=False):
            splitter.restoreState(blob_of(text))
        self.tabs.setCurrentIndex(self._state.tab)
        self.reader.toolbar.outline.setChecked(self._state.outline)
        if self._state.zoom > 0:
            self.reader.view.set_zoom(self._state.zoom)
        QTimer.singleShot(0, self.chat.composer.editor.setFocus)
