"""The shown conversation read anew: after a turn that changed its history, and where another process wrote to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat.live import PENDING_ANSWER
from app.chat.panel import ChatPanel
from app.chat.screen import Screen
from app.core.records import Conversation, Message, MessageId
from app.services import Services
from engine.messages import ConversationId

FOLLOW_MS = 500  # an answer that another process writes is stored about once a second


class Loaded(NamedTuple):
    """`elsewhere`: another living process is writing the last answer."""

    conversation: Conversation
    messages: tuple[Message, ...]
    elsewhere: bool


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
        self._follow = QTimer(self, singleShot=True, interval=FOLLOW_MS)  # the end of a killed process is no change
        self._follow.timeout.connect(self.look)
        services.events.answer_changed.connect(lambda event: self._changed(event.conversation))

    def load(self, conversation: ConversationId) -> Callable[[], Loaded]:
        """What reads a conversation with its messages; not for the main thread."""
        store = self._services.workspace.conversations

        def read() -> Loaded:
            leased = store.leased_by(conversation) not in (None, os.getpid())  # first: it ends behind the last word
            messages = store.messages(conversation)
            return Loaded(store.get(conversation), messages, leased and _unfinished(messages))

        return read

    def follow(self, elsewhere: bool) -> None:
        """Looks again soon while another process is writing."""
        if elsewhere:
            self._follow.start()
        else:
            self._follow.stop()

    def again(self, conversation: ConversationId | None, question: str = "") -> None:
        """The messages anew, a running turn included. `question`: goes back into the empty composer."""
        if conversation is not None:
            self._services.tasks.read(self.load(conversation), lambda loaded: self._show(loaded, question))

    def _changed(self, conversation: ConversationId) -> None:
        """What is noted with an answer; where the next one is being written it shows when that ends."""
        if self._screen.holds(conversation) and self._screen.answering() is None:
            self.again(conversation)

    def look(self) -> None:
        """Shows what another process (the command line) has stored in or taken from the shown conversation."""
        if self._screen.owner is not None:
            answering = self._screen.answering()
            self._services.tasks.read(self.load(self._screen.owner), lambda found: self._compare(found, answering))

    def _compare(self, found: Loaded, answering: MessageId | None) -> None:
        """What was read while another turn ran says nothing; a turn that begins or ends has it read again."""
        screen = self._screen
        if not screen.holds(found.conversation.id):
            return
        self.follow(found.elsewhere)
        if screen.answering() != answering or answering == PENDING_ANSWER:
            return
        if screen.conversation is not None and _settled(found.conversation) != _settled(screen.conversation):
            self.changed.emit(found.conversation)
        self._show_changes(found, answering)

    def _show_changes(self, found: Loaded, answering: MessageId | None) -> None:
        transcript, is_followed = self._panel.transcript, self._screen.elsewhere and found.elsewhere
        shown, stored = (
            {message.id: (message.text, message.reasoning) for message in some if message.id != answering}
            for some in (transcript.messages(), found.messages)
        )
        if is_followed and shown.keys() == stored.keys():
            transcript.grow(found.messages[-1])
        elif shown != stored or self._screen.elsewhere != found.elsewhere:
            place = transcript.place()
            self._show(found, "")
            transcript.restore_place(place)

    def _show(self, loaded: Loaded, question: str) -> None:
        conversation, messages, elsewhere = loaded
        if self._screen.holds(conversation.id):
            self._screen.show(messages, elsewhere)
            self.follow(elsewhere)
            self._panel.composer.price_again()
            self.shown.emit(conversation.id, messages)
            if question and not self._panel.composer.text():
                self._panel.composer.show_draft(question)


def _settled(conversation: Conversation) -> Conversation:
    """Without what changes while it is used."""
    return replace(conversation, updated=0.0, draft="")


def _unfinished(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].role == "assistant" and messages[-1].state == "partial"
