"""The shown conversation read anew: after a turn that changed its history, and where another process wrote to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.chat.live import PENDING_ANSWER
from app.chat.panel import ChatPanel
from app.chat.screen import Screen
from app.core.records import Conversation, Message, MessageId
from app.services import Services
from engine.messages import ConversationId

Loaded = tuple[Conversation, tuple[Message, ...]]


class Rereading(QObject):
    """Signals:
    shown: messages are on the screen anew (arguments: id, tuple of messages).
    changed: title, documents or mode are other ones now (argument: Conversation).
    """

    shown = Signal(str, object)
    changed = Signal(object)

    def __init__(self, services: Services, panel: ChatPanel, screen: Screen) -> None:
        super().__init__(panel)
        self._services = services
        self._panel = panel
        self._screen = screen

    def load(self, conversation: ConversationId) -> Callable[[], Loaded]:
        """What reads a conversation with its messages; not for the main thread."""
        store = self._services.workspace
        return lambda: (store.conversations.get(conversation), store.conversations.messages(conversation))

    def again(self, conversation: ConversationId | None, question: str = "") -> None:
        """The messages anew, a running turn included. `question`: goes back into the empty composer."""
        if conversation is not None:
            self._services.tasks.read(self.load(conversation), lambda loaded: self._show(loaded, question))

    def look(self) -> None:
        """Shows what another process (the command line) has stored in or taken from the shown conversation."""
        if self._screen.owner is not None:
            answering = self._screen.answering()
            self._services.tasks.read(self.load(self._screen.owner), lambda found: self._compare(found, answering))

    def _compare(self, found: Loaded, answering: MessageId | None) -> None:
        """What was read while another turn ran says nothing; a turn that begins or ends has it read again."""
        screen = self._screen
        if not screen.holds(found[0].id) or screen.answering() != answering or answering == PENDING_ANSWER:
            return
        if screen.conversation is not None and _settled(found[0]) != _settled(screen.conversation):
            self.changed.emit(found[0])
        transcript = self._panel.transcript
        shown, stored = (
            {message.id: message.text for message in some if message.id != answering}
            for some in (transcript.messages(), found[1])
        )
        if shown != stored:
            place = transcript.place()
            self._show(found, "")
            transcript.restore_place(place)

    def _show(self, loaded: Loaded, question: str) -> None:
        conversation, messages = loaded
        if self._screen.holds(conversation.id):
            self._screen.show(messages)
            self._panel.composer.price_again()
            self.shown.emit(conversation.id, messages)
            if question and not self._panel.composer.text():
                self._panel.composer.show_draft(question)


def _settled(conversation: Conversation) -> Conversation:
    """Without what changes while it is used."""
    return replace(conversation, updated=0.0, draft="")
