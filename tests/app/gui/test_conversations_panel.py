"""The list of conversations over a real store: new, rename, delete with undo, search, states."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.conversations.model import ConversationModel, Row, face
from app.chat.conversations.panel import ConversationsPanel
from app.core.records import Conversation
from app.services import Services
from engine.messages import ConversationId, StateReport, Tokens


@pytest.fixture
def panel(services: Services, qtbot: QtBot) -> ConversationsPanel:
    for title in ("Harbour dues", "Orchard care", "Clock repair"):
        services.workspace.chats.new(title)
    store = services.workspace.conversations
    store.append(store.list()[0].id, "user", "how do escapements wear", Tokens())
    made = ConversationsPanel(services)
    qtbot.addWidget(made)
    made.resize(260, 500)
    made.show()
    with qtbot.waitSignal(made.loaded):
        made.reload()
    return made


def titles(panel: ConversationsPanel) -> list[str]:
    return [conversation.title for conversation in panel.rows.all()]


def report(**changes: object) -> StateReport:
    whole = StateReport(1, ConversationId("c"), 1000, 1000, 0, 0, 1, 1, 0, (), None, 120.0, "memory")
    return replace(whole, **changes)


def test_newest_stands_first(panel: ConversationsPanel) -> None:
    assert titles(panel) == ["Clock repair", "Orchard care", "Harbour dues"]


def test_click_chooses_once(panel: ConversationsPanel, qtbot: QtBot) -> None:
    chosen: list[Conversation] = []
    panel.chosen.connect(chosen.append)
    panel.select(panel.rows.all()[1].id)
    panel.put(replace(panel.rows.all()[1], title="Orchards"))
    assert [conversation.title for conversation in chosen] == ["Orchard care"]
    assert titles(panel)[1] == "Orchards"


def test_delete_is_undone(panel: ConversationsPanel, qtbot: QtBot, services: Services) -> None:
    panel.select(panel.rows.all()[1].id)
    panel.activateWindow()
    panel.list.setFocus()
    qtbot.waitUntil(panel.list.hasFocus)
    qtbot.keyClick(panel.list, Qt.Key.Key_Delete)
    assert titles(panel) == ["Clock repair", "Harbour dues"]
    store = services.workspace.conversations
    qtbot.waitUntil(lambda: [c.title for c in store.list(trashed=True)] == ["Orchard care"])
    services.toasts._action.click()
    qtbot.waitUntil(lambda: "Orchard care" in titles(panel))
    assert store.list(trashed=True) == ()


def test_deleting_the_last_one_asks_for_a_new_one(panel: ConversationsPanel, qtbot: QtBot) -> None:
    for _ in range(2):
        panel.select(panel.rows.all()[0].id)
        panel.delete()
    panel.select(panel.rows.all()[0].id)
    with qtbot.waitSignal(panel.new_wanted):
        panel.delete()


def test_rename_is_stored(panel: ConversationsPanel, qtbot: QtBot, services: Services) -> None:
    panel.select(panel.rows.all()[2].id)
    with patch("app.chat.conversations.rename.QInputDialog.getText", return_value=("  Port fees ", True)):
        panel.rename()
    qtbot.waitUntil(lambda: "Port fees" in titles(panel))
    assert "Port fees" in [c.title for c in services.workspace.conversations.list()]
    with (
        patch("app.chat.conversations.rename.QInputDialog.getText", return_value=("Orchard care", True)),
        qtbot.waitSignal(services.tasks.failed) as told,
    ):
        panel.rename()
    assert told.args[0].what == "The name is taken."
    assert "Port fees" in titles(panel)


@pytest.mark.parametrize(("words", "found"), [("escapem", ["Clock repair"]), ("harb", ["Harbour dues"]), ("zzz", [])])
def test_search_looks_into_titles_and_messages(
    panel: ConversationsPanel, qtbot: QtBot, words: str, found: list[str]
) -> None:
    qtbot.keyClicks(panel.search, words)
    qtbot.waitUntil(lambda: titles(panel) == found)
    panel.search.clear()
    qtbot.waitUntil(lambda: len(titles(panel)) == 3)


def test_what_was_found_is_opened_by_enter_and_walked_to_by_down(panel: ConversationsPanel, qtbot: QtBot) -> None:
    chosen: list[str] = []
    panel.chosen.connect(lambda conversation: chosen.append(conversation.title))
    panel.activateWindow()
    panel.searching.begin()
    qtbot.waitUntil(panel.search.hasFocus)
    qtbot.keyClicks(panel.search, "harb")
    qtbot.keyClick(panel.search, Qt.Key.Key_Return)  # sooner than the search begins by itself
    qtbot.waitUntil(lambda: chosen == ["Harbour dues"])
    qtbot.keyClicks(panel.search, "\b\b\b\borch")
    qtbot.waitUntil(lambda: titles(panel) == ["Orchard care"])
    qtbot.keyClick(panel.search, Qt.Key.Key_Down)
    qtbot.waitUntil(panel.list.hasFocus)
    assert chosen == ["Harbour dues", "Orchard care"]


@pytest.mark.parametrize(
    ("changes", "icon", "words"),
    [
        ({}, "state-memory", "in memory"),
        ({"tier": "disk", "tokens_memory": 0, "tokens_disk_only": 1000}, "state-disk", "on disk"),
        ({"tier": "none", "tokens_memory": 0}, "state-none", "must be read, ~2 min"),
        (
            {"tier": "disk", "tokens_memory": 0, "tokens_disk_only": 500},
            "state-disk",
            "on disk, ~60 s to read",
        ),
        ({"tokens_memory": 384}, "state-none", "must be read, ~74 s"),
    ],
)
def test_state_is_told_by_shape_and_words(changes: dict[str, object], icon: str, words: str) -> None:
    shown = face(Row(Conversation(ConversationId("c"), "Title", 0.0, 0.0), report(**changes)))
    assert (shown.icon, shown.detail) == (icon, words)


def test_running_turn_is_marked(qtbot: QtBot) -> None:
    model = ConversationModel()
    model.show_list([Conversation(ConversationId("c"), "Title", 0.0, 0.0)])
    model.set_phase(ConversationId("c"), "reading")
    from app.widgets.rows import FACE

    assert model.index(0).data(FACE).busy
    model.set_phase(ConversationId("c"), "")
    assert not model.index(0).data(FACE).busy
