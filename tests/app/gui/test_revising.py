"""Edits and removals in the chat, without a model: what is offered fits what has happened."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.chat.controller import ChatController
from app.chat.message_menu import message_menu
from app.chat.panel import ChatPanel
from app.core.errors import NothingReadable, UserError
from app.core.events import TurnDone, TurnError, TurnWithdrawn
from app.core.records import Message
from app.services import Services
from app.widgets.cards import ErrorCard
from engine.messages import Tokens, TurnId


class Chat:
    def __init__(self, qtbot: QtBot, services: Services) -> None:
        self.services, self.panel = services, ChatPanel(services)
        qtbot.addWidget(self.panel)
        self.controller = ChatController(services, self.panel, tuple)
        self.id = services.workspace.chats.new().id
        self.store = services.workspace.conversations
        for place, text in enumerate(("One?", "Yes.", "Two?", "Yes.", "Three?", "Yes.")):
            tokens = Tokens.prompt(range(10 * place, 10 * place + 10))
            self.store.append(self.id, "assistant" if place % 2 else "user", text, tokens)
        self.controller.open(self.store.get(self.id))
        qtbot.waitUntil(lambda: self.controller.on_screen == self.id)

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.store.messages(self.id)

    def toast(self) -> str:
        return self.services.toasts._text.text()


@pytest.fixture
def chat(qtbot: QtBot, services: Services) -> Chat:
    return Chat(qtbot, services)


@pytest.mark.parametrize("end", ["refused", "withdrawn", "error"])
def test_an_edit_that_was_not_asked_offers_no_undo_later(chat: Chat, qtbot: QtBot, end: str) -> None:
    events, question, answer = chat.services.events, chat.messages[4], chat.messages[5]
    if end == "refused":  # no model is loaded
        chat.panel.composer.begin_edit(question)
        with qtbot.waitSignal(chat.controller.turn_ended):
            chat.controller.send("Three, really?")
    else:
        chat.controller.revising.begin_again(question)
        error = TurnError(TurnId(1), chat.id, UserError("It does not fit."))
        withdrawn = TurnWithdrawn(TurnId(1), chat.id)
        events.turn_withdrawn.emit(withdrawn) if end == "withdrawn" else events.turn_error.emit(error)
    events.turn_done.emit(TurnDone(TurnId(2), chat.id, answer))  # of the next ordinary question
    assert "before your edit" not in chat.toast()


@pytest.mark.parametrize("failed", [False, True])
def test_an_edit_that_was_asked_offers_undo(chat: Chat, failed: bool) -> None:
    events, question, answer = chat.services.events, chat.messages[4], chat.messages[5]
    chat.controller.revising.begin_again(question)
    error = UserError("The model has stopped.")
    turn = TurnId(1)
    if failed:
        events.turn_error.emit(TurnError(turn, chat.id, error, answer))
    else:
        events.turn_done.emit(TurnDone(turn, chat.id, answer))
    assert "before your edit" in chat.toast()


def menu(chat: Chat, message: Message) -> dict[str, Callable[[], None]]:
    made = message_menu(chat.panel, message, chat.controller.revising._acts, is_last=False)
    return {action.text(): action.trigger for action in made.actions()}


def test_bring_back_means_the_turn_that_was_chosen(chat: Chat, qtbot: QtBot) -> None:
    before = chat.messages
    chat.services.workspace.revisions.remove_turn(chat.id, before[0].id)
    chat.store.cuts.set_aside(chat.id, [m.id for m in before[4:]], 30, 16)  # an edit of the last turn
    chat.store.append(chat.id, "user", "Three, really?", Tokens.prompt(range(7)))
    acts = menu(chat, chat.messages[0])
    assert "Undo the last edit or removal" in acts
    acts["Bring back into the context"]()
    qtbot.waitUntil(lambda: chat.messages[0].in_context)
    assert [m.text for m in chat.messages[::2]] == ["One?", "Two?", "Three, really?"]
    menu(chat, chat.messages[0])["Undo the last edit or removal"]()
    qtbot.waitUntil(lambda: chat.messages == before)


def test_a_draft_typed_just_before_an_edit_is_stored(chat: Chat, qtbot: QtBot) -> None:
    qtbot.keyClicks(chat.panel.composer.editor, "And then")
    chat.panel.composer.begin_edit(chat.messages[4])
    qtbot.waitUntil(lambda: chat.store.get(chat.id).draft == "And then")


def test_an_edit_ends_where_another_conversation_is_shown(chat: Chat, qtbot: QtBot) -> None:
    """Sent there it would be refused, and the draft there would be lost."""
    qtbot.keyClicks(chat.panel.composer.editor, "And then")
    chat.panel.composer.begin_edit(chat.messages[4])
    other = chat.services.workspace.chats.new()
    chat.store.set_draft(other.id, "Elsewhere")
    chat.controller.open(chat.store.get(other.id))
    qtbot.waitUntil(lambda: chat.controller.on_screen == other.id)
    assert chat.panel.composer.editing.message is None
    assert chat.panel.composer.text() == "Elsewhere"
    assert chat.store.get(chat.id).draft == "And then"


def test_nothing_to_undo_is_no_failure(chat: Chat, qtbot: QtBot) -> None:
    for act, told in (
        (chat.controller.revising.undo, "Nothing can come back"),
        (chat.controller.revising.redo, "redo"),
    ):
        act()
        qtbot.waitUntil(lambda told=told: told in chat.toast())
    assert not chat.panel.findChildren(ErrorCard)


def test_where_nothing_can_be_read_the_scans_are_offered_to_be_read(
    chat: Chat, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr(chat.services.workspace.documents, "recognise", read.append)
    error = NothingReadable("None of the 4 pages of scan.pdf can be read.", "They are scanned.", "Read them.", (7, 9))
    chat.services.events.turn_error.emit(TurnError(TurnId(1), chat.id, error))
    (wanted,) = [b for b in chat.panel.findChildren(QPushButton) if b.text() == "Read the scans"]
    wanted.click()
    qtbot.waitUntil(lambda: read == [7, 9])
