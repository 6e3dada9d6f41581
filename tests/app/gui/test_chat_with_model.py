"""Stop, continue, answer again, and a wrong download, in the real window with the real starter model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.core.events import TurnPhase
from app.models.dialog import ModelsDialog
from assets import sample_pdf
from engine.messages import Cancel, Sampling
from tests.app.gui.driver import Driver
from tests.app.held import held_until

pytestmark = pytest.mark.model


@pytest.fixture
def driver(qapp: QApplication, tmp_path: Path, starter_model: Path) -> Iterator[Driver]:
    made = Driver(qapp, tmp_path / "home")
    try:
        made.show()
        made.desktop.workspace.update_settings(
            fetch_embedder=False, sampling=Sampling(temperature=0.8, seed=5, max_tokens=300)
        )
        made.use_model(starter_model)
        yield made
    finally:
        made.quit()


def stop(driver: Driver, qtbot: QtBot) -> None:
    """By the key, as a reader would."""
    window = driver.window
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    driver.until(lambda: not window.controller.live.running(), "it does not stop")


def test_stop_continue_and_answer_again(driver: Driver, qtbot: QtBot) -> None:
    window, controller = driver.window, driver.window.controller
    driver.ask("Write a long story about a river.")
    assert window.chat.transcript.answers, "the question and its progress are shown at once"
    driver.until(lambda: len(driver.shown_text()) > 40, "no text")
    stop(driver, qtbot)
    (half,) = driver.done
    assert half.state == "cancelled"
    assert driver.shown_text() == half.text
    assert len(half.text) > 40

    go_on = [b for b in window.chat.transcript.answers[-1].findChildren(QPushButton) if b.text() == "Continue"]
    go_on[0].click()
    driver.until(lambda: len(driver.shown_text()) > len(half.text) + 20, "it does not go on")
    assert driver.shown_text().startswith(half.text)
    stop(driver, qtbot)
    longer = driver.done[-1]
    assert longer.id == half.id
    assert longer.text.startswith(half.text)

    controller.regenerate()
    driver.until(lambda: driver.shown_text() and controller.live.running(), "no new answer")
    stop(driver, qtbot)
    stored = driver.desktop.workspace.conversations.messages(controller.on_screen)
    assert [message.role for message in stored] == ["user", "assistant"]
    assert stored[1].id != half.id
    assert len(window.chat.transcript._views) == 2
    assert driver.errors == []


def test_a_stop_while_a_document_is_read_costs_nothing_that_was_read(
    qapp: QApplication, tmp_path: Path, starter_model: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_until(monkeypatch, Cancel, 12)  # of 64 tokens
    made = Driver(qapp, tmp_path / "home")
    try:
        made.show()
        slow = replace(made.desktop.workspace.settings.engine, prefill_chunk=64)
        short = Sampling(temperature=0.0, max_tokens=8)
        made.desktop.workspace.update_settings(fetch_embedder=False, sampling=short, read_ahead=False, engine=slow)
        made.add(sample_pdf())
        made.use_model(starter_model)
        made.until(made.documents, "it is not attached")
        _ask_stop_and_ask_again(made, qtbot)
    finally:
        made.quit()


def _ask_stop_and_ask_again(driver: Driver, qtbot: QtBot) -> None:
    window, here = driver.window, driver.window.controller.on_screen
    phases: list[TurnPhase] = []
    driver.desktop.bridge.turn_phase.connect(phases.append)
    driver.ask("How long is a document kept?")
    driver.until(lambda: any(one.phase == "reading" and one.done >= 512 for one in phases), "nothing is read")
    stop(driver, qtbot)
    (stopped,) = driver.answered(here)
    tokens = stopped.report.tokens
    read = sum(part.tokens for part in tokens.computed)
    assert 512 <= read < tokens.prompt
    assert tokens.unread == tokens.prompt - read
    driver.ask("How long is a document kept?")
    driver.until(lambda: len(driver.answered(here)) == 2, "no answer")
    report = driver.answered(here)[1].report
    assert report.tokens.reused.total >= read // 128 * 128
    assert report.tokens.prompt == tokens.prompt
    shown = [view.message.text for view in window.chat.transcript._views if view.message.role == "user"]
    assert shown == ["How long is a document kept?"] * 2, "the stopped question is still shown"


def test_second_question_shows_what_was_reused_and_panels_follow(driver: Driver) -> None:
    window = driver.window
    driver.desktop.workspace.update_settings(sampling=Sampling(temperature=0.0, max_tokens=12))
    here = window.controller.on_screen
    for number, question in enumerate(("Name a river.", "And a lake?"), start=1):
        driver.ask(question)
        driver.until(lambda n=number: len(driver.answered(here)) == n, "no answer")
    report = driver.answered(here)[1].report
    assert report.tokens.reused.total > 20
    assert window.conversations.rows.at(0).title.startswith("Name a river")
    driver.until(lambda: window.cache._values["Tokens"].text() not in ("–", "0"), "no state")
    assert "1 end" in window.cache._pages.map.accessibleName()
    assert "tokens reused" in window.cache._turn.text()
    driver.until(lambda: "save" in window.cache._log.toPlainText(), "no operations")
    for words in ("Unpin", "Pin"):
        window.cache.pin()
        driver.until(lambda words=words: window.cache._pin.text() == words, "the pin is not shown")
    window.tabs.setCurrentWidget(window.timing)
    assert window.timing._cards.count() == 2


def test_wrong_hub_name_is_told_in_the_dialog(driver: Driver) -> None:
    driver.window.dialogs.models()
    dialog = driver.window.dialogs.shown
    assert isinstance(dialog, ModelsDialog)
    dialog.fetch("not a name")
    driver.until(lambda: dialog._messages.count(), "no message")
    error = dialog._messages.itemAt(0).widget()._error
    assert error.what
    assert error.next
    assert driver.window.status.loaded is not None, "the loaded model stays"
