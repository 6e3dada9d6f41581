"""Two conversations on two PDFs, both answering; switching; quitting in the middle; coming back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.widgets.watchdog import Watchdog
from tests.app.gui.driver import Driver
from tests.app.gui.pdf_files import long_pages

pytestmark = [pytest.mark.model, pytest.mark.slow]
LONG_ANSWER = "Write a long text about all the rules, one after the other, with every detail."


def test_switch_while_streaming_quit_in_the_middle_and_come_back(
    qapp: QApplication, tmp_path: Path, make_pdf: Callable[..., Path], starter_model: Path
) -> None:
    files = [make_pdf(f"{name}.pdf", long_pages(name, 2)) for name in ("harbour", "orchard")]
    home = tmp_path / "home"
    first, second = _two_running(qapp, home, files, starter_model)
    _come_back(qapp, home, first, second)


def _two_running(qapp: QApplication, home: Path, files: list[Path], model: Path) -> tuple[str, str]:
    """Leaves both conversations with half an answer by quitting. Returns their ids."""
    driver = Driver(qapp, home)
    try:
        driver.show()
        driver.desktop.workspace.update_settings(fetch_embedder=False)
        driver.use_model(model)
        conversations = []
        for file in files:
            if conversations:
                driver.new_conversation()
            driver.add(file)
            driver.until(driver.documents, "the document was not attached")
            conversations.append(driver.window.controller.on_screen)
            driver.ask(LONG_ANSWER)
            driver.until(lambda: len(driver.shown_text()) > 20, "no text was streamed")
        _switch_while_both_run(driver, *conversations)
    finally:
        driver.quit()
    assert not driver.errors
    return conversations[0], conversations[1]


def _switch_while_both_run(driver: Driver, first: str, second: str) -> None:
    """What streams elsewhere is there, and goes on growing, when its conversation is shown again."""
    watchdog = Watchdog(limit=0.1).start()
    live = driver.window.controller.live
    for conversation in (first, second, first, second):
        driver.choose(conversation)
        driver.until(lambda: driver.shown_text(), "nothing is shown of the running answer")
        assert {turn.conversation for turn in live.running()} == {first, second}
        before = driver.shown_text()
        driver.until(lambda before=before: len(driver.shown_text()) > len(before), "it does not grow")
        assert driver.shown_text().startswith(before[:20])
        assert live.get(conversation).text.startswith(driver.shown_text()[:20])
    assert [stall for stall in watchdog.stop() if stall.is_ours] == []


def _come_back(qapp: QApplication, home: Path, first: str, second: str) -> None:
    driver = Driver(qapp, home)
    try:
        driver.show()
        assert driver.window.controller.conversation.id == second, "the last conversation is shown again"
        driver.until(lambda: driver.shown_text(), "the partial answer is not shown")
        driver.wait_for_model()
        _is_on_disk(driver, first)
        _is_brought_back(driver, second)
        for conversation in (second, first):
            driver.choose(conversation)
            driver.until(lambda: driver.shown_text(), "the partial answer is lost")
            stored = driver.desktop.workspace.conversations.messages(conversation)
            assert [message.role for message in stored] == ["user", "assistant"]
            assert stored[1].state in ("partial", "cancelled")
            assert len(stored[1].text) > 20
        _resume(driver, first)
    finally:
        driver.quit()


def _is_on_disk(driver: Driver, conversation: str) -> None:
    """Nobody has looked at it since the start: its state lies on disk and nowhere else."""
    states = driver.window.conversations.rows
    driver.until(lambda: states.state(conversation), "its state was not reported")
    state = states.state(conversation)
    assert state.tier == "disk"
    assert state.tokens_disk_only > 500
    assert state.tokens_memory == 0


def _is_brought_back(driver: Driver, conversation: str) -> None:
    """It was on the screen before there was a model: its state comes back with that, before a question does."""
    reports = []
    driver.desktop.bridge.state_report.connect(reports.append)

    def is_back() -> bool:
        driver.desktop.workspace.states.request(conversation)
        driver.wait(0.1)
        return any(report.conversation == conversation and report.tier == "memory" for report in reports)

    driver.until(is_back, "it stays on disk")
    driver.desktop.bridge.state_report.disconnect(reports.append)


def _resume(driver: Driver, conversation: str) -> None:
    """Once it is looked at, the state comes back from disk; the question reads only itself."""
    driver.desktop.workspace.update_settings(
        sampling=type(driver.desktop.workspace.settings.sampling)(temperature=0.0, max_tokens=8)
    )
    driver.ask("And what is rule 3?")
    driver.until(lambda: driver.answered(conversation) or driver.errors, "no answer")
    assert not driver.errors
    report = driver.answered(conversation)[0].report
    reused, computed = report.tokens.reused, sum(part.tokens for part in report.tokens.computed)
    assert reused.total + computed == report.tokens.prompt
    assert reused.total > 500
    assert computed < 100, "only the new question and its passages are read"
