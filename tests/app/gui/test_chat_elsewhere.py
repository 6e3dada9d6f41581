"""Turns of the shown conversation that another process has stored."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.chat.controller import ChatController
from app.chat.panel import ChatPanel
from app.core.events import TurnDone, TurnStarted
from app.services import Services
from engine.messages import Tokens, TurnId


def test_turns_of_the_command_line_come_on_the_screen(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    controller = ChatController(services, panel, dict)
    here = services.workspace.new_conversation()
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
