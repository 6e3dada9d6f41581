"""What the reader does to the history: edit, fork, trim, remove and bring back; each says what it costs, with undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Signal

from app.chat.message_menu import MessageActs, message_menu
from app.chat.message_view import AnswerView, QuestionView
from app.chat.panel import ChatPanel
from app.chat.refused import Refused
from app.core.errors import as_user_error
from app.core.explain import put_aside_words
from app.core.records import Conversation, Message, MessageId
from app.services import Services
from app.widgets.format import about, count, plural
from engine.messages import ConversationId

if TYPE_CHECKING:
    from app.core.revisions import Revised


def revised_words(revised: Revised) -> str:
    """`2 messages removed. 812 tokens are computed again with the next question, ~2 s.`"""
    what = f"{plural(revised.messages, 'message')} removed, {plural(revised.tokens, 'token')} leave the context."
    if revised.moved:
        what = f"{what} {count(revised.moved)} of the {count(revised.behind)} behind move up (approximate)."
    if not revised.behind or (revised.approximate and revised.again <= 1):
        return what if revised.moved else f"{what} Nothing is read again."
    wait = f", {about(revised.seconds)}" if revised.seconds else ""
    return f"{what} {plural(revised.again, 'token')} are read again with the next question{wait}."


class Revising(QObject):
    """Signals:
    reload: the shown conversation has other messages now.
    forked: a new conversation (argument: Conversation).
    """

    reload = Signal()
    forked = Signal(object)

    def __init__(self, services: Services, panel: ChatPanel, shown: Callable[[], Conversation | None]) -> None:
        super().__init__(panel)
        self._services = services
        self._panel = panel
        self._shown = shown
        self._acts = MessageActs(
            panel.composer.begin_edit,
            self.fork,
            self.trim,
            lambda message: self.remove(message, "recompute"),
            lambda message: self.remove(message, "shift"),
            lambda message: self.bring_back(message.id),
            lambda _: self.undo(),
            lambda _: self.redo(),
        )
        self.refused = Refused(services, panel, self.fork_with_draft)
        self._edited: dict[ConversationId, Message] = {}
        panel.transcript.menu_wanted.connect(self._menu)
        panel.transcript.bring_back.connect(self.bring_back)
        services.events.turn_done.connect(lambda event: self._asked_again(event.conversation))
        services.events.turn_error.connect(lambda event: event.message and self._asked_again(event.conversation))
        services.events.turn_moved.connect(lambda event: self.not_asked(event.conversation))
        panel.composer.editor.last_wanted.connect(self.edit_last)

    def edit_last(self) -> None:
        """The newest question, to be written again (Up in the empty editor)."""
        question = self._panel.transcript.message_before()
        if question is not None:
            self._panel.composer.begin_edit(question)

    def begin_again(self, edited: Message) -> None:
        """That question is asked in other words; it and all behind it leave the screen."""
        self._panel.composer.end_edit()
        self._panel.transcript.cut_from(edited.id)
        self._edited[edited.conversation] = edited

    def _asked_again(self, conversation: ConversationId) -> None:
        shown = self._shown()
        if conversation in self._edited and shown is not None and shown.id == conversation:
            self._services.toasts.offer_undo("What stood here before your edit is put aside.", self.undo)
        self._edited.pop(conversation, None)

    def not_asked(self, conversation: ConversationId) -> Message | None:
        """Nothing was sent: an edit has changed nothing. Returns the question that was to be replaced."""
        return self._edited.pop(conversation, None)

    def fork(self, message: Message) -> None:
        workspace = self._services.workspace
        self._do(lambda id: workspace.chats.fork(id, last=message.id), self.forked.emit)

    def fork_with_draft(self) -> None:
        """A copy of all of it, in which what stands in the composer can be asked."""
        workspace, draft = self._services.workspace, self._panel.composer.text()

        def act(id: ConversationId) -> Conversation:
            return workspace.conversations.set_draft(workspace.chats.fork(id).id, draft)

        self._do(act, self.forked.emit)

    def trim(self, message: Message) -> None:
        self._do(lambda id: self._services.workspace.revisions.trim(id, message.id), self._revised)

    def remove(self, message: Message, way: str) -> None:
        workspace = self._services.workspace
        self._do(lambda id: workspace.revisions.remove_turn(id, message.id, way), self._revised)

    def bring_back(self, message: MessageId | None = None) -> None:
        """The turns that left the context with that message are wanted in it again; None: those that left last."""
        workspace = self._services.workspace
        self._do(lambda id: workspace.revisions.bring_back_turns(id, message), lambda _: self.reload.emit())

    def undo(self) -> None:
        """The last edit, removal or other answer is taken back."""
        self._do(lambda id: self._services.workspace.revisions.undo_last(id), self._swapped)

    def redo(self) -> None:
        self._do(lambda id: self._services.workspace.revisions.redo_last(id), lambda _: self.reload.emit())

    def _swapped(self, aside: int) -> None:
        self.reload.emit()
        if aside:
            self._services.toasts.say(f"{put_aside_words(aside)}.", "Redo", self.redo)

    def _revised(self, revised: Revised) -> None:
        self.reload.emit()
        workspace = self._services.workspace
        self._services.toasts.offer_undo(
            revised_words(revised),
            lambda: self._do(lambda _: workspace.revisions.bring_back(revised), lambda _: self.reload.emit()),
        )

    def _menu(self, view: QuestionView | AnswerView, place: QPoint) -> None:
        if view.message.id > 0:
            is_last = self._panel.transcript.is_last(view)
            message_menu(self._panel, view.message, self._acts, is_last).popup(place)

    def _do(self, act: Callable[[ConversationId], object], then: Callable[..., object]) -> None:
        shown = self._shown()
        if shown is not None:
            self._services.tasks.write(lambda: act(shown.id), then, self._failed)

    def _failed(self, error: Exception) -> None:
        self.refused.show(as_user_error(error))
