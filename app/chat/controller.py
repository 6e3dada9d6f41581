"""What happens in the chat: choosing conversations, sending, streaming, stopping. One short method per action.

What the reader sets for a conversation is in `changing`, what changes its history in `revising`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Signal

from app.chat.changing import Changing
from app.chat.chips import ChipFace
from app.chat.draft import Draft, not_yet
from app.chat.overflow import PASSAGES
from app.chat.panel import ChatPanel
from app.chat.rereading import Loaded, Rereading
from app.chat.revising import Revising
from app.chat.screen import Screen
from app.core import events
from app.core.errors import UserError, as_user_error
from app.core.records import Conversation
from app.services import Services
from engine.messages import ConversationId, TurnId

Faces = Callable[[Sequence[int]], Sequence[ChipFace]]


class ChatController(QObject):
    """Signals:
    changed: the shown conversation's title, documents or mode changed (argument: Conversation).
    opened: messages of a conversation are on the screen (arguments: id, tuple of messages).
    turn_ended: a turn is over (argument: conversation id).
    moved: the shown conversation goes on in another, or was forked (argument: the new Conversation).
    """

    changed = Signal(object)
    opened = Signal(str, object)
    turn_ended = Signal(str)
    moved = Signal(object)

    def __init__(self, services: Services, panel: ChatPanel, faces: Faces) -> None:
        super().__init__(panel)
        self._services = services
        self._workspace = services.workspace
        self._panel = panel
        self._faces = faces
        self._draft = Draft(services, panel.composer)
        self.screen = Screen(panel)
        self.live = self.screen.live
        self._to_ask: dict[ConversationId, str] = {}  # questions that wait until their conversation is shown
        self._stale: set[ConversationId] = set()  # a running turn has changed what is in the context
        self.revising = Revising(services, panel, lambda: self.conversation)
        self.changing = Changing(services, panel, lambda: self.conversation)
        self._rereading = Rereading(services, panel, self.screen)
        self._connect()

    @property
    def conversation(self) -> Conversation | None:
        """The chosen one."""
        return self.screen.conversation

    @property
    def on_screen(self) -> ConversationId | None:
        """Whose messages the transcript holds."""
        return self.screen.owner

    # --- choosing ---------------------------------------------------------------------------------
    def open(self, conversation: Conversation) -> None:
        self.leave()
        self.screen.conversation, self.screen.owner = conversation, None
        self._draft.belong_to(conversation.id)
        self._show_header()
        self._panel.composer.set_running(self.live.get(conversation.id) is not None)
        id, store = conversation.id, self._workspace
        self._services.tasks.read(self._rereading.load(id), self._loaded, self._panel.show_failure)
        self._services.tasks.read(lambda: store.states.focus(id), None, not_yet)

    def leave(self) -> None:
        """Keeps the draft and the place of the conversation that was shown; a question of it is edited no more."""
        self._panel.composer.end_edit()
        self.screen.keep_place()
        self._draft.leave()

    def put(self, conversation: Conversation) -> None:
        if self.conversation is not None and conversation.id == self.conversation.id:
            self.screen.conversation = conversation
            self._show_header()
            self._panel.composer.price_again()
            self.changed.emit(conversation)

    def _loaded(self, loaded: Loaded) -> None:
        conversation, messages, elsewhere = loaded
        if self.conversation is None or conversation.id != self.conversation.id:
            return
        self.screen.conversation = conversation
        self._show_header()
        self._panel.clear_errors()
        self.screen.owner = conversation.id
        self.screen.show(messages, elsewhere)
        self._rereading.follow(elsewhere)
        self._panel.composer.set_running(self.live.get(conversation.id) is not None)
        self._panel.composer.show_draft(conversation.draft)
        self.screen.restore_place(conversation.id)
        self.opened.emit(conversation.id, messages)
        if (question := self._to_ask.pop(conversation.id, None)) is not None:
            self.send(question)

    def _show_header(self) -> None:
        if self.conversation is not None:
            self._panel.show_conversation(self.conversation, self._faces(self.conversation.document_ids))

    # --- turns ------------------------------------------------------------------------------------
    def send(self, text: str, way: str | None = None) -> None:
        """`way`: how to go on where the conversation is full."""
        if self.conversation is None:
            return
        id, edited = self.conversation.id, self._panel.composer.editing.message
        self._panel.clear_ways()
        if edited is not None or way is not None:
            self._stale.add(id)
        if edited is None:
            self._start(text, lambda: self._workspace.ask(id, text, way))
            return
        self.revising.begin_again(edited)
        self._start(text, lambda: self._workspace.edit(id, edited.id, text, way))

    def send_by(self, way: str) -> None:
        """The question in the composer, by a way out of the full context."""
        text = self._panel.composer.text().strip()
        if way == PASSAGES:
            self.changing.set_mode("passages")
        elif text:
            self._panel.composer.show_draft("")
            self.send(text, way)

    def read_rest(self) -> None:
        """The last question again, over the pages that its answer does not rest on."""
        id, asked = self.screen.at_rest(), self._panel.transcript.last_question
        if id is not None and asked:
            self._start(asked, lambda: self._workspace.ask(id, asked, survey=True, is_draft=False))

    def regenerate(self) -> None:
        id = self.screen.at_rest()
        if id is not None and not self.screen.is_empty():
            self._start(None, lambda: self._workspace.regenerate(id))

    def go_on(self) -> None:
        id = self.screen.at_rest()
        if id is not None:
            self._run(id, lambda: self._workspace.continue_answer(id))

    def stop(self) -> None:
        live = self.live.get(self.conversation.id if self.conversation else None)
        if live is None:
            self._panel.composer.end_edit()
        elif live.turn is not None:
            self._services.tasks.read(lambda: self._workspace.cancel(live.turn))

    def _start(self, question: str | None, call: Callable[[], TurnId]) -> None:
        conversation = self.conversation
        if conversation is None:
            return
        live = self.live.ask(conversation.id, question)
        transcript = self._panel.transcript
        if live.question is not None:
            transcript.add_question(live.question)
        transcript.begin_answer(live.answer)
        self._panel.show_empty(False)
        self._run(conversation.id, call)

    def _run(self, conversation: ConversationId, call: Callable[[], TurnId]) -> None:
        self._panel.clear_errors()
        self._panel.composer.set_running(True)
        self._services.tasks.read(
            call,
            lambda turn: self.live.set_turn(conversation, turn),
            lambda error: self._refused(conversation, as_user_error(error)),
        )

    # --- events of turns --------------------------------------------------------------------------
    def _started(self, event: events.TurnStarted) -> None:
        live = self.live.begin(event)
        if not self.screen.holds(event.conversation):
            return
        transcript = self._panel.transcript
        if live.question is not None:
            transcript.confirm_question(live.question)
        transcript.begin_answer(live.answer, live.text, live.reasoning)
        if live.phase is not None:
            transcript.show_phase(live.phase)
        self._panel.show_empty(False)
        self._panel.composer.set_running(True)
        if event.conversation in self._stale:
            self._stale.discard(event.conversation)
            self.reload()
        else:
            self.look_again()

    def _phase(self, event: events.TurnPhase) -> None:
        self.live.show_phase(event)
        if self.screen.holds(event.conversation):
            self._panel.transcript.show_phase(event)

    def _text(self, event: events.TurnText) -> None:
        self.live.append(event)
        if self.screen.holds(event.conversation):
            self._panel.transcript.append_text(event.delta, event.part)

    def _done(self, event: events.TurnDone) -> None:
        self.live.end(event.conversation)
        if self.screen.holds(event.conversation):
            self._panel.transcript.finish(event.message)
            self.look_again()
        self._ended(event.conversation)

    def _moved(self, event: events.TurnMoved) -> None:
        """A full conversation goes on in a new one; its question is asked there."""
        self.live.end(event.conversation)
        self._to_ask[event.target.id] = event.question
        self._ended(event.conversation)
        if self.screen.holds(event.conversation):
            self.moved.emit(event.target)

    def _withdrawn(self, event: events.TurnWithdrawn) -> None:
        self._give_back(event.conversation)

    def _error(self, event: events.TurnError) -> None:
        if event.message is None:
            self._refused(event.conversation, event.error)
            return
        self.live.end(event.conversation)
        if self.screen.holds(event.conversation):
            self._panel.transcript.fail(event.message, event.error, self.regenerate)
        else:
            self._services.toasts.say(f"{event.error.what} {event.error.next}")
        self._ended(event.conversation)

    def _refused(self, conversation: ConversationId, error: UserError) -> None:
        """Nothing was stored: the question is the draft again, with the reason above it."""
        self._give_back(conversation)
        if self.screen.holds(conversation):
            self.revising.refused.show(error)
        else:
            self._services.toasts.say(f"{error.what} {error.next}")

    def reload(self) -> None:
        """The messages of the shown conversation anew, a running turn included."""
        self._rereading.again(self.on_screen)

    def look_again(self) -> None:
        """Shows what another process (the command line) has stored in or taken from the shown conversation."""
        self._rereading.look()

    def _give_back(self, conversation: ConversationId) -> None:
        live, edited = self.live.end(conversation), self.revising.not_asked(conversation)
        self._stale.discard(conversation)
        if self.screen.holds(conversation) and self.conversation is not None:
            question = live.question.text if live is not None and live.question is not None else ""
            if edited is not None:
                self._panel.composer.begin_edit(edited, question)
            self._rereading.again(conversation, question)
        self._ended(conversation)

    def _ended(self, conversation: ConversationId) -> None:
        if self.screen.holds(conversation):
            self._panel.composer.set_running(False)
            self._panel.composer.price_again()
        self.turn_ended.emit(conversation)

    def names_changed(self) -> None:
        self._show_header()
        self._panel.composer.price_again()  # what is gone costs nothing

    def set_model(self, has_model: bool, why_not: str) -> None:
        """Whether questions can be sent; `why_not` is shown otherwise."""
        self._draft.set_model(has_model, why_not)

    def _connect(self) -> None:
        bus, panel = self._services.events, self._panel
        bus.turn_started.connect(self._started)
        bus.turn_phase.connect(self._phase)
        bus.turn_text.connect(self._text)
        bus.turn_done.connect(self._done)
        bus.turn_error.connect(self._error)
        bus.turn_withdrawn.connect(self._withdrawn)
        bus.turn_moved.connect(self._moved)
        panel.way_chosen.connect(self.send_by)
        self._rereading.shown.connect(self.opened)
        self._rereading.changed.connect(self.put)
        self.changing.changed.connect(self.put)
        self.revising.reload.connect(self.reload)
        self.revising.forked.connect(self.moved)
        panel.composer.sent.connect(self.send)
        panel.composer.stopped.connect(self.stop)
        bus.model_loaded.connect(panel.header.show_model)
        panel.transcript.regenerate.connect(self.regenerate)
        panel.transcript.go_on.connect(self.go_on)
        panel.transcript.read_rest.connect(self.read_rest)
