"""A full conversation and changes to its history, in the real window with the real starter model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from app.chat.message_menu import message_menu
from engine.messages import EngineSettings, Sampling
from tests.app.gui.driver import Driver

pytestmark = pytest.mark.model
LONG = "Tell me about the river, the hill, the old bridge and the mill." * 3


@pytest.fixture
def driver(qapp: QApplication, tmp_path: Path, starter_model: Path) -> Iterator[Driver]:
    made = Driver(qapp, tmp_path / "home")
    try:
        made.show()
        made.desktop.workspace.update_settings(
            fetch_embedder=False,
            sampling=Sampling(temperature=0.0, max_tokens=8),
            engine=EngineSettings(context=400),
        )
        made.use_model(starter_model)
        yield made
    finally:
        made.quit()


def asked(driver: Driver, *questions: str) -> None:
    for question in questions:
        here = driver.window.controller.on_screen
        before = len(driver.answered(here))
        driver.ask(question)
        driver.until(lambda b=before, h=here: len(driver.answered(h)) > b or driver.errors, "no answer")
        assert not driver.errors, driver.errors


def card(driver: Driver, text: str):
    driver.window.chat.composer.editor.setPlainText(text)
    driver.until(lambda: driver.window.chat._ways is not None, "no way out is offered")
    return driver.window.chat._ways


def messages(driver: Driver):
    return driver.desktop.workspace.conversations.messages(driver.window.controller.on_screen)


def test_old_turns_leave_only_when_the_reader_says_so_and_come_back(driver: Driver) -> None:
    window = driver.window
    asked(driver, *(f"{number}. {LONG}" for number in range(5)))
    offered = card(driver, LONG)
    assert not window.chat.composer._button.isEnabled()
    able = [way for way, made in offered.buttons.items() if made.isEnabled()]
    assert able == ["recompute", "shift", "fork", "larger"]
    assert len(messages(driver)) == 10
    offered.buttons["recompute"].click()
    here = window.controller.on_screen
    driver.until(lambda: len(driver.answered(here)) == 6, "no answer")
    transcript = window.chat.transcript
    driver.until(lambda: not transcript._left.isHidden(), "what left is not marked")
    left = [view.message.in_context for view in transcript._views]
    assert left == [message.in_context for message in messages(driver)]
    assert left.count(False) >= 2
    assert transcript._views[0].graphicsEffect() is not None
    assert window.chat._ways is None
    window.controller.revising.bring_back()
    driver.until(lambda: transcript._left.isHidden(), "they do not come back")
    assert all(message.in_context for message in messages(driver))


def test_a_fork_with_a_summary_goes_on_there(driver: Driver) -> None:
    window, before = driver.window, driver.window.controller.on_screen
    asked(driver, *(f"{number}. {LONG}" for number in range(5)))
    card(driver, "And the sea? " + LONG).buttons["fork"].click()
    driver.until(lambda: window.controller.on_screen != before, "no new conversation")
    driver.until(lambda: driver.answered(window.controller.on_screen), "no answer")
    first, summary, question, _ = messages(driver)
    assert "before" in first.text
    assert summary.text
    assert question.text.startswith("And the sea?")
    assert len(driver.desktop.workspace.conversations.messages(before)) == 10


def test_an_edited_question_that_does_not_fit_goes_on_in_its_place(driver: Driver) -> None:
    """Refused first: it stays an edit, with what was written."""
    window, composer = driver.window, driver.window.chat.composer
    asked(driver, *(f"{number}. {LONG}" for number in range(5)))
    composer.editor.setPlainText("a draft")
    edited, longer = messages(driver)[-2], LONG * 3
    composer.begin_edit(edited)
    driver.ask(longer)
    driver.until(lambda: driver.errors and window.chat._ways is not None, "it is not refused")
    driver.until(lambda: composer.text() == longer, "what was written is gone")
    assert composer.editing.message == edited
    window.chat._ways.buttons["recompute"].click()
    driver.until(lambda: len(driver.done) == 6 or len(driver.errors) > 1, "no answer")
    assert len(driver.errors) == 1, driver.errors
    questions = [m.text for m in messages(driver) if m.role == "user"]
    assert questions == [*(f"{number}. {LONG}" for number in range(4)), longer]
    assert not messages(driver)[0].in_context
    driver.until(lambda: composer.editing.message is None and composer.text() == "a draft", "the draft is gone")


def menu_of(driver: Driver, place: int) -> dict[str, object]:
    window = driver.window
    view = window.chat.transcript._views[place]
    menu: QMenu = message_menu(window, view.message, window.controller.revising._acts, place >= 2)
    return {action.text(): action for action in menu.actions() if action.text()}


def test_edit_by_the_keyboard_replaces_what_follows(driver: Driver, qtbot: QtBot) -> None:
    window = driver.window
    asked(driver, "Name a river.", "Is it long?")
    window.activateWindow()
    editor = window.chat.composer.editor
    editor.setFocus()
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    assert editor.toPlainText() == "Is it long?"
    assert window.chat.composer.editing.message is not None
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    driver.until(lambda: window.chat.composer.editing.message is None, "Esc does not leave it")
    assert editor.toPlainText() == ""
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    editor.setPlainText("Is it deep?")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    driver.until(lambda: len(driver.done) == 3, "no answer")
    assert [m.text for m in messages(driver) if m.role == "user"] == ["Name a river.", "Is it deep?"]
    assert [v.message.text for v in window.chat.transcript._views][::2] == ["Name a river.", "Is it deep?"]
    difference = driver.done[-1].report.difference
    assert (difference.expected, difference.found) == (" long", " deep")
    toasts = driver.desktop.toasts
    driver.until(lambda: "put aside" in toasts._text.text(), "the old one is not offered")
    toasts._action.click()
    driver.until(lambda: [m.text for m in messages(driver)][2] == "Is it long?", "undo did nothing")
    driver.until(lambda: toasts._action.text() == "Redo", "no redo")
    menu_of(driver, 0)["Redo"].trigger()
    driver.until(lambda: [m.text for m in messages(driver)][2] == "Is it deep?", "redo did nothing")


def test_fork_trim_and_remove_from_the_menu(driver: Driver) -> None:
    window = driver.window
    asked(driver, "Name a river.", "Is it long?", "Or deep?")
    first = window.controller.on_screen
    menu_of(driver, 1)["Remove what follows"].trigger()
    driver.until(lambda: len(window.chat.transcript._views) == 2, "nothing was removed")
    assert "4 messages removed" in driver.desktop.toasts._text.text()
    driver.desktop.toasts._action.click()
    driver.until(lambda: len(window.chat.transcript._views) == 6, "undo did nothing")
    menu_of(driver, 0)["Remove this turn"].trigger()
    driver.until(lambda: not messages(driver)[0].in_context, "it stays")
    assert [m.in_context for m in messages(driver)] == [False] * 2 + [True] * 4
    driver.until(lambda: "read again with the next question" in driver.desktop.toasts._text.text(), "no price")
    driver.until(lambda: not window.chat.transcript._views[1].message.in_context, "not shown")
    menu_of(driver, 1)["Bring back into the context"].trigger()
    driver.until(lambda: all(m.in_context for m in messages(driver)), "not back")
    menu_of(driver, 1)["Fork from here"].trigger()
    driver.until(lambda: window.controller.on_screen not in (None, first), "no fork")
    assert len(messages(driver)) == 2
