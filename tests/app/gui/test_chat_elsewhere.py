"""Turns of the shown conversation that another process has stored."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.chat.chips import Chip, ChipFace
from app.chat.controller import ChatController
from app.chat.panel import ChatPanel
from app.core.conversations import ConversationStore
from app.core.events import JobId, Notice, TurnDone, TurnStarted
from app.library.model import LibraryModel
from app.services import Services
from app.widgets.cards import ErrorCard
from app.widgets.rows import FACE
from engine.messages import ConversationId, Tokens, TurnId
from rag import Library
from rag.index.locks import exclusive
from rag.types import IngestProgress
from tests.app.gui.driver import Driver
from tests.app.gui.pdf_files import long_pages

HOLDER = """
import sys
from pathlib import Path
from app.core.conversations import ConversationStore
with ConversationStore(Path(sys.argv[1])).lease(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""
ROOT = Path(__file__).parents[3]


@contextmanager
def held_elsewhere(services: Services, conversation: ConversationId) -> Iterator[subprocess.Popen[str]]:
    """Another process that continues it, until it is killed or its input ends."""
    run = [sys.executable, "-c", HOLDER, str(services.workspace.paths.conversations), conversation]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(run, **pipes, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def told(widget: QWidget) -> str:
    return " ".join(part.text() for kind in (QLabel, QPushButton) for part in widget.findChildren(kind))


def test_an_answer_that_another_process_writes_grows_and_is_interrupted_when_that_is(
    qtbot: QtBot, services: Services
) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    controller, store = ChatController(services, panel, tuple), services.workspace.conversations
    here = services.workspace.chats.new()
    store.append(here.id, "user", "There?", Tokens())
    answer = store.append(here.id, "assistant", "It is", Tokens(), "partial")
    with held_elsewhere(services, here.id) as process:
        controller.open(here)
        qtbot.waitUntil(lambda: controller.on_screen == here.id)
        view = panel.transcript.answers[-1]
        assert "another Pagekeep" in told(view)
        assert "Interrupted" not in told(view)
        assert "Continue" not in told(view)
        assert "Another Pagekeep" in panel.composer.meter._words.text()
        store.update_answer(answer.id, "It is growing", Tokens(), "partial")
        qtbot.waitUntil(lambda: view.text() == "It is growing")
        assert panel.transcript.answers == [view], "the text grows where it stands"
        assert "Continue" not in told(view)
        process.kill()
        process.wait()
        qtbot.waitUntil(lambda: "Continue" in told(panel.transcript.answers[-1]))
    assert "Interrupted" in told(panel.transcript.answers[-1])
    assert "Another Pagekeep" not in panel.composer.meter._words.text()


def test_an_answer_that_another_process_completes_is_shown_complete(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    controller, store = ChatController(services, panel, tuple), services.workspace.conversations
    here = services.workspace.chats.new()
    store.append(here.id, "user", "There?", Tokens())
    answer = store.append(here.id, "assistant", "", Tokens(), "partial")
    with held_elsewhere(services, here.id):
        controller.open(here)
        qtbot.waitUntil(lambda: controller.on_screen == here.id)
        store.update_answer(answer.id, "Yes.", Tokens(), "complete")
        qtbot.waitUntil(lambda: "another Pagekeep" not in told(panel.transcript.answers[-1]))
        last = panel.transcript.answers[-1]
        assert last.text() == "Yes."
        assert "Interrupted" not in told(last)
        assert "Continue" not in told(last)


def test_that_another_process_holds_a_conversation_is_told_while_it_does(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    controller, store = ChatController(services, panel, tuple), services.workspace.conversations
    here = services.workspace.chats.new()
    store.append(here.id, "user", "There?", Tokens())
    answer = store.append(here.id, "assistant", "Yes.", Tokens())
    controller.open(here)
    qtbot.waitUntil(lambda: controller.on_screen == here.id)
    with held_elsewhere(services, here.id) as process:
        controller.revising.trim(answer)
        qtbot.waitUntil(lambda: bool(panel.findChildren(ErrorCard)))
        card = panel.findChildren(ErrorCard)[-1]
        assert str(process.pid) in told(card)
        panel.composer.editor.setPlainText("And here?")
        fork = next(made for made in card.findChildren(QPushButton) if made.text() == "Fork")
        with qtbot.waitSignal(controller.moved) as moved:
            fork.click()
        assert [message.text for message in store.messages(moved.args[0].id)] == ["There?", "Yes."]
        assert moved.args[0].draft == "And here?", "the question goes along"
        assert panel.shows_error(card), "it is held still"
        process.kill()
        process.wait()
        qtbot.waitUntil(lambda: not panel.shows_error(card))


def test_turns_of_the_command_line_come_on_the_screen(qtbot: QtBot, services: Services) -> None:
    panel = ChatPanel(services)
    qtbot.addWidget(panel)
    controller = ChatController(services, panel, tuple)
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
            driver.until(lambda: len(transcript.messages()) == 2, "the turn is not shown")
            driver.until(lambda: rows.place(made.id) is not None, "the new conversation is not listed")
            assert driver.window.conversations.current == here
            other.rename(here, "Named in a terminal")
            other.trash(made.id)
            driver.until(lambda: rows.place(made.id) is None, "the deleted one stays listed")
            driver.until(lambda: driver.window.controller.conversation.title == "Named in a terminal", "old name")
            driver.window.notice(Notice("Lost.", "", "", here))
            said = driver.desktop.toasts._text
            driver.until(lambda: said.text() == "“Named in a terminal”: Lost.", "the notice is not named")
    finally:
        driver.quit()


IMPORT_HANGS = """
import sys, time
from pathlib import Path
from rag import Library

def hang(progress):
    if progress.phase == "text" and progress.document_id:
        print("begun", flush=True)
        time.sleep(60)

Library(Path({folder!r})).add(Path({pdf!r}), on_progress=hang)
"""


def chips(driver: Driver) -> list[ChipFace]:
    return [chip.face for chip in driver.window.chat.header.findChildren(Chip) if chip.isVisible()]


def test_the_open_window_notices_what_a_terminal_does_to_the_library(
    qapp: QApplication, tmp_path: Path, make_pdf: Callable[..., Path]
) -> None:
    driver = Driver(qapp, tmp_path / "home")
    try:
        driver.show()
        driver.desktop.workspace.update_settings(fetch_embedder=False)
        driver.add(make_pdf("orchard.pdf", long_pages("orchard", 2)))
        driver.until(driver.documents, "not attached")
        window = driver.window
        orchard = window.library.rows.documents()[0].id
        driver.until(lambda: window.reader.wanted() == orchard, "the reader is empty")
        with closing(Library(driver.desktop.workspace.paths.library)) as other:
            added = other.add(make_pdf("harbour.pdf", long_pages("harbour", 2)))
            other.make_collection("Towns")
            other.put_in("Towns", [added.id])
            driver.until(lambda: "harbour.pdf" in window.library.rows.names().values(), "not listed")
            driver.until(lambda: [c.name for c in window.library.collections.known] == ["Towns"], "no collection")
            other.trash(orchard)
            driver.until(lambda: orchard not in window.library.rows.names(), "the removed one stays listed")
            assert window.reader.wanted() is None, "the reader keeps it open"
            gone = [ChipFace(orchard, "orchard.pdf", "in the trash")]
            driver.until(lambda: chips(driver) == gone, "the chip does not say so")
            other.restore(orchard)
            driver.until(lambda: window.reader.wanted() == orchard, "what came back is not opened")
            driver.until(lambda: chips(driver) == [ChipFace(orchard, "orchard.pdf")], "still called gone")
    finally:
        driver.quit()


def test_the_open_window_goes_on_with_what_another_process_was_killed_in(
    qapp: QApplication, tmp_path: Path, make_pdf: Callable[..., Path]
) -> None:
    driver = Driver(qapp, tmp_path / "home")
    try:
        driver.show()
        driver.desktop.workspace.update_settings(fetch_embedder=False)
        window, folder = driver.window, driver.desktop.workspace.paths.library
        code = IMPORT_HANGS.format(folder=str(folder), pdf=str(make_pdf("harbour.pdf", long_pages("harbour", 2))))
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "begun\n"
                driver.until(lambda: window.library.rows.running, "the other import is not seen")
            finally:
                process.kill()
        driver.until(lambda: [one.state for one in window.library.rows.documents()] == ["words"], "not gone on with")
        assert driver.window.controller.conversation is None or not driver.documents()
    finally:
        driver.quit()


def test_what_another_process_takes_in_is_not_called_stopped(services: Services, make_pdf: Callable[..., Path]) -> None:
    library = services.workspace.library
    begun = replace(library.add(make_pdf("orchard.pdf", long_pages("orchard", 1))), state="importing")
    rows = LibraryModel()
    rows.show_documents([begun])
    assert not library.is_being_read(begun)
    assert "stopped" in rows.index(0).data(FACE).detail
    with exclusive(library._lock(begun.sha256), lambda: False):
        assert library.is_being_read(begun)
        rows.show_running(frozenset({begun.id}))
    assert "elsewhere" in rows.index(0).data(FACE).detail
    assert rows.running


def test_what_the_window_itself_was_told_to_stop_stays_stopped(
    services: Services, make_pdf: Callable[..., Path]
) -> None:
    begun = replace(
        services.workspace.library.add(make_pdf("orchard.pdf", long_pages("orchard", 1))), state="importing"
    )
    rows = LibraryModel()
    rows.show_documents([begun])
    rows.begin_import(JobId("job"), begun.path)
    assert not rows.show_running(frozenset({begun.id}))  # whose it is, is not known yet
    rows.show_progress(JobId("job"), IngestProgress(begun.path, begun.id, "text", 1, 2))
    assert not rows.show_running(frozenset({begun.id}))
    rows.end_import(JobId("job"))
    assert not rows.show_running(frozenset())
    assert not rows.show_running(frozenset({begun.id}))
    assert rows.show_running(frozenset()) == {begun.id}
