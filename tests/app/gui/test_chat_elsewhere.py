"""Turns of the shown conversation that another process has stored."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.controller import ChatController
from app.chat.panel import ChatPanel
from app.core.conversations import ConversationStore
from app.core.events import TurnDone, TurnStarted
from app.services import Services
from engine.messages import Tokens, TurnId
from tests.app.gui.driver import Driver


def test_turns_of_the_command_line_come_on_the_screen(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    controller = ChatController(services, panel, dict)
    here = services.workspace.chats.new()
    controller.open(here)
    qtbot.waitUntil(lambda: controller.on_screen == here.id)

    def stored(role: str, text: str):
        return services.workspace.conversations.append(here.id, role, text, Tokens())

    def shown() -> list[str]:
        return [message.text for message in panel.transcript.messages()]

    stored("user", "There?")
    stored("assistant", "Yes.")
    controller.look_again()
    qtbot.waitUntil(lambda: shown() == ["There?", "Yes."])

    stored("user", "And there?")
    stored("assistant", "Also.")
    question, answer = stored("user", "Here?"), stored("assistant", "")
    services.events.turn_started.emit(TurnStarted(TurnId(1), here.id, question, answer))
    qtbot.waitUntil(lambda: shown() == ["There?", "Yes.", "And there?", "Also.", "Here?", ""])

    stored("user", "Late?")
    services.events.turn_done.emit(TurnDone(TurnId(1), here.id, answer))
    qtbot.waitUntil(lambda: shown()[-1] == "Late?")


def test_the_open_window_notices_what_a_terminal_stores(qapp: QApplication, tmp_path: Path) -> None:
    driver = Driver(qapp, tmp_path / "home")
    try:
        driver.show()
        here = driver.window.controller.on_screen
        with closing(ConversationStore(driver.desktop.workspace.paths.conversations)) as other:
            other.append(here, "user", "Asked in a terminal?", Tokens())
            other.append(here, "assistant", "Answered there.", Tokens())
            made = other.create("Begun in a terminal")
            transcript, rows = driver.window.chat.transcript, driver.window.conversations.rows
            driver.until(lambda: len(transcript.messages()) == 2, "the turn is not shown", 10)
            driver.until(lambda: rows.place(made.id) is not None, "the new conversation is not listed", 10)
            assert driver.window.conversations.current == here
            other.rename(here, "Named in a terminal")
            other.trash(made.id)
            driver.until(lambda: rows.place(made.id) is None, "the deleted one stays listed", 10)
            driver.until(lambda: driver.window.controller.conversation.title == "Named in a terminal", "old name", 10)
    finally:
        driver.quit()
