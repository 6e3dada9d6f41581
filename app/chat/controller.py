"""What happens in the chat: choosing conversations, sending, streaming, stopping. One short method per action.

Over 300 lines: the one owner of which conversation is on the screen and what runs in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.chat.draft import Draft, not_yet
from app.chat.live import PENDING_ANSWER, LiveTurns
from app.chat.overflow import PASSAGES
from app.chat.panel import ChatPanel
from app.chat.revising import Revising
from app.core import events
from app.core.errors import DoesNotFit, UserError, as_user_error
from app.core.lookups import Scope
from app.core.records import Conversation, Message, MessageId, Mode
from app.services import Services
from engine.messages import ConversationId, TurnId

Names = Callable[[], dict[int, str]]
Loaded = tuple[Conversation, tuple[Message, ...]]


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

    def __init__(self, services: Services, panel: ChatPanel, names: Names) -> None:
        super().__init__(panel)
        self._services = services
        self._workspace = services.workspace
        self._panel = panel
        self._names = names
        self._places: dict[ConversationId, int | None] = {}
        self._draft = Draft(services, panel.composer)
        self.conversation: Conversation | None = None
        self.on_screen: ConversationId | None = None  # whose messages the transcript holds
        self.live = LiveTurns()
        self._to_ask: dict[ConversationId, str] = {}  # questions that wait until their conversation is shown
        self._stale: set[ConversationId] = set()  # a running turn has changed what is in the context
        self.revising = Revising(services, panel, lambda: self.conversation)
        self._connect()

    # --- choosing ---------------------------------------------------------------------------------
    def open(self, conversation: Conversation) -> None:
        self.leave()
        self.conversation, self.on_screen = conversation, None
        self._draft.belong_to(conversation.id)
        self._show_header()
        self._panel.composer.set_running(self.live.get(conversation.id) is not None)
        id, store = conversation.id, self._workspace
        self._services.tasks.read(self._reading(id), self._loaded, self._failed)
        self._services.tasks.read(lambda: store.focus(id), None, not_yet)

    def set_place(self, conversation: ConversationId, place: int | None) -> None:
        """Where the transcript stood when the window was closed; used when it opens."""
        self._places[conversation] = place

    def leave(self) -> None:
        """Keeps the draft and the place of the conversation that was shown."""
        if self.on_screen is not None:
            self._places[self.on_screen] = self._panel.transcript.place()
        self._draft.leave()

    def place(self) -> int | None:
        return self._panel.transcript.place()

    def is_empty(self) -> bool:
        """The shown conversation has no message and none on the way."""
        if self.conversation is None or self.live.get(self.conversation.id) is not None:
            return self.conversation is None
        return self._is_shown(self.conversation.id) and self._panel.transcript.is_empty

    def put(self, conversation: Conversation) -> None:
        if self.conversation is not None and conversation.id == self.conversation.id:
            self.conversation = conversation
            self._show_header()
            self._panel.composer.price_again()
            self.changed.emit(conversation)

    def _loaded(self, loaded: Loaded) -> None:
        conversation, messages = loaded
        if self.conversation is None or conversation.id != self.conversation.id:
            return
        self.conversation = conversation
        self._show_header()
        self._panel.clear_errors()
        self.on_screen = conversation.id
        self._show_messages(messages)
        self._panel.composer.set_running(self.live.get(conversation.id) is not None)
        self._panel.composer.show_draft(conversation.draft)
        self._panel.transcript.restore_place(self._places.get(conversation.id))
        self.opened.emit(conversation.id, messages)
        if (question := self._to_ask.pop(conversation.id, None)) is not None:
            self.send(question)

    def _show_messages(self, messages: Sequence[Message]) -> None:
        live = self.live.get(self.conversation.id if self.conversation else None)
        shown = list(messages)
        if live is not None:
            own = {live.answer.id, live.question.id if live.question else None}
            continued = [m for m in shown if m.id == live.answer.id and live.question is None]
            shown = [m for m in shown if m.id not in own or m in continued]
        transcript = self._panel.transcript
        transcript.show_messages(shown)
        if live is not None:
            if live.question is not None:
                transcript.add_question(live.question)
            transcript.begin_answer(live.answer, live.text, live.reasoning)
            if live.phase is not None:
                transcript.show_phase(live.phase)
        self._panel.show_empty(transcript.is_empty)

    def _show_header(self) -> None:
        if self.conversation is not None:
            names = self._names()
            documents = [(id, names.get(id, "removed document")) for id in self.conversation.document_ids]
            self._panel.show_conversation(self.conversation, documents)

    # --- turns ------------------------------------------------------------------------------------
    def send(self, text: str, way: str | None = None) -> None:
        """`way`: how to go on where the conversation is full."""
        if self.conversation is None:
            return
        id, edited = self.conversation.id, self._panel.composer.editing.message
        self._panel.clear_ways()
        if edited is not None:
            self._panel.composer.end_edit()
            self._panel.transcript.cut_from(edited.id)
            self._stale.add(id)
            self._start(text, lambda: self._workspace.edit(id, edited.id, text))
            return
        if way is not None:
            self._stale.add(id)
        self._start(text, lambda: self._workspace.ask(id, text, way))

    def send_by(self, way: str) -> None:
        """The question in the composer, by a way out of the full context."""
        text = self._panel.composer.text().strip()
        if way == PASSAGES:
            self.set_mode("passages")
        elif text:
            self._panel.composer.show_draft("")
            self.send(text, way)

    def read_rest(self) -> None:
        """The last question again, over the pages that its answer does not rest on."""
        id, asked = self._at_rest(), self._panel.transcript.last_question
        if id is not None and asked:
            self._start(asked, lambda: self._workspace.ask(id, asked, survey=True))

    def regenerate(self) -> None:
        id = self._at_rest()
        if id is not None and not self.is_empty():
            self._start(None, lambda: self._workspace.regenerate(id))

    def go_on(self) -> None:
        id = self._at_rest()
        if id is not None:
            self._run(id, lambda: self._workspace.continue_answer(id))

    def _at_rest(self) -> ConversationId | None:
        """The shown conversation when nothing of it is being answered."""
        shown = self.conversation
        return None if shown is None or self.live.get(shown.id) is not None else shown.id

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
        if not self._is_shown(event.conversation):
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
        if self._is_shown(event.conversation):
            self._panel.transcript.show_phase(event)

    def _text(self, event: events.TurnText) -> None:
        self.live.append(event)
        if self._is_shown(event.conversation):
            self._panel.transcript.append_text(event.delta, event.part)

    def _done(self, event: events.TurnDone) -> None:
        self.live.end(event.conversation)
        if self._is_shown(event.conversation):
            self._panel.transcript.finish(event.message)
            self.look_again()
        self._ended(event.conversation)

    def _moved(self, event: events.TurnMoved) -> None:
        """A full conversation goes on in a new one; its question is asked there."""
        self.live.end(event.conversation)
        self._to_ask[event.target.id] = event.question
        self._ended(event.conversation)
        if self._is_shown(event.conversation):
            self.moved.emit(event.target)

    def _withdrawn(self, event: events.TurnWithdrawn) -> None:
        self._give_back(event.conversation)

    def _error(self, event: events.TurnError) -> None:
        if event.message is None:
            self._refused(event.conversation, event.error)
            return
        self.live.end(event.conversation)
        if self._is_shown(event.conversation):
            self._panel.transcript.fail(event.message, event.error, self.regenerate)
        else:
            self._services.toasts.say(f"{event.error.what} {event.error.next}")
        self._ended(event.conversation)

    def _refused(self, conversation: ConversationId, error: UserError) -> None:
        """Nothing was stored: the question is the draft again, with the reason above it."""
        self._give_back(conversation)
        if self._is_shown(conversation) and isinstance(error, DoesNotFit) and error.ways:
            self._panel.show_ways(error.over_by, error.ways, True, error.whole)
        elif self._is_shown(conversation):
            self._panel.show_error(error)
        else:
            self._services.toasts.say(f"{error.what} {error.next}")

    def reload(self) -> None:
        """The messages of the shown conversation anew, a running turn included."""
        if self.on_screen is not None:
            self._read_again(self.on_screen, "")

    def look_again(self) -> None:
        """Shows what another process (the command line) has stored in or taken from the shown conversation."""
        if self.on_screen is not None:
            answering = self._answering()
            self._services.tasks.read(self._reading(self.on_screen), lambda found: self._compare(found, answering))

    def _answering(self) -> MessageId | None:
        live = self.live.get(self.on_screen)
        return None if live is None else live.answer.id

    def _compare(self, found: Loaded, answering: MessageId | None) -> None:
        """What was read while another turn ran says nothing; a turn that begins or ends has it read again."""
        if not self._is_shown(found[0].id) or self._answering() != answering or answering == PENDING_ANSWER:
            return
        if replace(found[0], updated=0.0, draft="") != replace(self.conversation, updated=0.0, draft=""):
            self.put(found[0])
        transcript = self._panel.transcript
        shown, stored = (
            {message.id: message.text for message in some if message.id != answering}
            for some in (transcript.messages(), found[1])
        )
        if shown != stored:
            place = transcript.place()
            self._after_return(found, "")
            transcript.restore_place(place)

    def _give_back(self, conversation: ConversationId) -> None:
        live = self.live.end(conversation)
        self._stale.discard(conversation)
        if self._is_shown(conversation) and self.conversation is not None:
            question = live.question.text if live is not None and live.question is not None else ""
            self._read_again(conversation, question)
        self._ended(conversation)

    def _read_again(self, conversation: ConversationId, question: str) -> None:
        """`question`: goes back into the empty composer."""
        self._services.tasks.read(
            self._reading(conversation), lambda loaded: self._after_return(loaded, question)
        )

    def _reading(self, conversation: ConversationId) -> Callable[[], Loaded]:
        store = self._workspace
        return lambda: (store.conversations.get(conversation), store.conversations.messages(conversation))

    def _after_return(self, loaded: Loaded, question: str) -> None:
        conversation, messages = loaded
        if self._is_shown(conversation.id):
            self._show_messages(messages)
            self._panel.composer.price_again()
            self.opened.emit(conversation.id, messages)
            if question and not self._panel.composer.text():
                self._panel.composer.show_draft(question)

    def _ended(self, conversation: ConversationId) -> None:
        if self._is_shown(conversation):
            self._panel.composer.set_running(False)
            self._panel.composer.price_again()
        self.turn_ended.emit(conversation)

    # --- documents and mode -----------------------------------------------------------------------
    def set_reasoning(self, on: bool) -> None:
        """Where that cannot be the switch goes back to what is loaded."""
        self._services.tasks.write(lambda: self._workspace.set_reasoning(on), None, self._reasoning_failed)

    def _reasoning_failed(self, error: Exception) -> None:
        self._panel.show_failure(error)
        if self._workspace.loaded is not None:
            self._panel.header.show_model(self._workspace.loaded)

    def attach(self, document: int) -> None:
        self._change(lambda id: self._workspace.attach(id, document))

    def detach(self, document: int) -> None:
        self._change(lambda id: self._workspace.detach(id, document))
        self._services.toasts.offer_undo("Later questions do not look into it.", lambda: self.attach(document))

    def set_mode(self, mode: Mode) -> None:
        self._change(lambda id: self._workspace.set_mode(id, mode))

    def set_scope(self, scope: Scope | None) -> None:
        self._change(lambda id: self._workspace.set_scope(id, scope))

    def names_changed(self) -> None:
        self._show_header()

    def set_model(self, has_model: bool, why_not: str) -> None:
        """Whether questions can be sent; `why_not` is shown otherwise."""
        self._draft.set_model(has_model, why_not)

    def _change(self, change: Callable[[ConversationId], Conversation]) -> None:
        if self.conversation is not None:
            id = self.conversation.id
            self._services.tasks.write(lambda: change(id), self.put, self._failed)

    # --- small ------------------------------------------------------------------------------------
    def _is_shown(self, conversation: ConversationId) -> bool:
        return self.on_screen == conversation

    def _failed(self, error: Exception) -> None:
        self._panel.show_failure(error)

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
        self.revising.reload.connect(self.reload)
        self.revising.forked.connect(self.moved)
        panel.composer.sent.connect(self.send)
        panel.composer.stopped.connect(self.stop)
        panel.header.mode_chosen.connect(self.set_mode)
        panel.header.reasoning.chosen.connect(self.set_reasoning)
        bus.model_loaded.connect(panel.header.show_model)
        panel.header.removed.connect(self.detach)
        panel.transcript.regenerate.connect(self.regenerate)
        panel.transcript.go_on.connect(self.go_on)
        panel.transcript.read_rest.connect(self.read_rest)
        panel.header.scope_removed.connect(lambda: self.set_scope(None))
