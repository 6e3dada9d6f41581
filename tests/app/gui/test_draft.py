"""The question being written: what is got ready while it is."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.controller import ChatController
from app.chat.panel import ChatPanel
from app.core.pricing import Price
from app.services import Services


@pytest.mark.parametrize("passages", [0, 900])
def test_what_finds_by_meaning_is_loaded_while_a_question_about_passages_is_written(
    qtbot: QtBot, services: Services, monkeypatch: pytest.MonkeyPatch, passages: int
) -> None:
    """The first question would be searched by words only."""
    priced: list[str] = []
    prepared: list[bool] = []

    def price(conversation: str, text: str, instead_of: object) -> Price:
        priced.append(text)
        total = 1_001 + len(text)  # so that the empty draft has another price
        return Price(total, 0, total, 8_192, 1.0, False, "", passage_tokens=passages)

    monkeypatch.setattr(services.workspace, "price", price)
    monkeypatch.setattr(services.workspace.documents, "prepare_search", lambda: prepared.append(bool(priced[-1])))
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    controller = ChatController(services, panel, tuple)
    made = services.workspace.chats.new()
    controller.open(made)
    qtbot.waitUntil(lambda: controller.on_screen == made.id)
    controller.set_model(True, "")
    qtbot.waitUntil(lambda: bool(priced))
    assert not prepared, "nothing is written yet"
    panel.composer.editor.setPlainText("What is a berth?")
    qtbot.waitUntil(lambda: "1,017" in panel.composer.meter.accessibleDescription())  # shown behind both
    assert bool(prepared) == bool(passages)
