"""The whole window without a model: start, first offer, preferences, restore, accessibility, the way out.

Over 300 lines: all that needs the whole window and no model shares one driver.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QPushButton, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from app.core.errors import UserError
from app.frame.focus import focus_order
from app.frame.state import WindowState, load_state, save_state
from app.preferences.dialog import PreferencesDialog
from app.preferences.help import SCROLL_BAR, SHORTCUTS
from app.widgets.cards import ErrorCard
from app.widgets.fitting import FittingScroll
from engine.messages import Tokens
from tests.app.gui.driver import Driver
from tests.app.gui.pdf_files import long_pages
from tests.engine.tiny_model import saved

ROOT = Path(__file__).resolve().parents[3]
FIRST_PAINT = """
import sys, time
from PySide6.QtWidgets import QApplication
application = QApplication([])
from app.core.paths import Paths
from app.gui import Desktop
desktop = Desktop(application, Paths.default().create())
desktop.window.show()
application.processEvents()
heavy = {"torch", "numpy", "sqlite_utils", "markdown_it", "pygments", "rag.library", "kernels"}
print(sorted(heavy & set(sys.modules)))
import os
os._exit(0)
"""


@pytest.fixture
def driver(qapp: QApplication, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(qapp, tmp_path / "home")
    made.desktop.theme.choose("light")
    made.show()
    made.desktop.workspace.update_settings(fetch_embedder=False)
    yield made
    made.quit()


def test_first_paint_needs_nothing_heavy(tmp_path: Path) -> None:
    environment = {**os.environ, "PAGEKEEP_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_PAINT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_first_start_offers_a_model_and_says_what_to_do(driver: Driver) -> None:
    window = driver.window
    driver.until(lambda: window.chat.offer_place.isVisible(), "no offer")
    assert window.chat.empty.isVisible()
    assert "Drop PDFs" in window.chat.empty.hint.text()
    window.chat.composer.editor.setPlainText("Why?")
    window.chat.composer.editor.send.emit()
    assert window.chat.composer.text() == "Why?", "nothing is sent without a model"


def test_wrong_model_file_says_why_and_changes_nothing(driver: Driver, tmp_path: Path) -> None:
    from app.models.dialog import ModelsDialog

    driver.window.dialogs.models()
    dialog = driver.window.dialogs.shown
    assert isinstance(dialog, ModelsDialog)
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"not a model")
    dialog.load(wrong)
    driver.until(lambda: dialog._messages.count(), "no message")
    error = dialog._messages.itemAt(0).widget()._error
    assert "wrong.gguf" in error.what + error.why
    assert driver.desktop.workspace.settings.model is None


def test_model_in_use_stays_in_use_where_another_fails(driver: Driver, tmp_path: Path) -> None:
    window = driver.window
    driver.use_model(saved(tmp_path, {}))
    window.new_conversation()
    said = window.status._model.text()
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"not a model")
    window.dialogs.models()
    dialog = window.dialogs.shown
    dialog.load(wrong)
    driver.until(lambda: dialog._messages.count(), "no message")
    assert dialog._current.text() != "No model is loaded"
    assert not window.chat.findChildren(ErrorCard), "it is told in the dialog"
    dialog.close()
    driver.until(lambda: window.dialogs.shown is None, "the dialog stays")
    driver.desktop.tasks.write(lambda: driver.desktop.workspace.load_model(wrong))
    driver.until(lambda: window.chat.findChildren(ErrorCard), "no message without the dialog")
    assert window.status._model.text() == said
    assert window.chat.offer_place.isHidden(), "no model is offered to one who has one"
    assert window.status.loaded is not None
    driver.until(lambda: "tokens used" in window.chat.composer.meter.accessibleDescription(), "it does not answer")


def test_small_window_keeps_its_size_and_its_words(driver: Driver, tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"not a model")
    driver.window.resize(900, 600)
    driver.desktop.tasks.write(
        lambda: driver.desktop.workspace.load_model(file), None, driver.window.chat.show_model_error
    )
    driver.until(lambda: driver.window.chat.offer.findChildren(ErrorCard), "no error")
    driver.wait(0.2)
    assert (driver.window.width(), driver.window.height()) == (900, 600)
    offer = driver.window.chat.offer
    for words in [part for part in offer.findChildren(QLabel) if part.isVisible() and part.wordWrap()]:
        assert words.height() >= words.heightForWidth(words.width())
    for pressed in [part for part in offer.findChildren(QPushButton) if part.isVisible()]:
        assert pressed.width() >= pressed.sizeHint().width()


def test_imported_document_joins_the_conversation(driver: Driver, make_pdf: Callable[..., Path]) -> None:
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 2)))
    driver.until(driver.documents, "not attached")
    driver.until(lambda: "orchard.pdf" in driver.window.chat.empty.title.text(), "not shown")
    (document,) = driver.documents()
    driver.window.chat.header.removed.emit(document)
    driver.until(lambda: not driver.documents(), "not detached")
    driver.desktop.toasts._action.click()
    driver.until(driver.documents, "undo did not attach it again")


def test_new_conversation_is_not_made_twice(driver: Driver) -> None:
    driver.window.new_conversation()
    driver.wait(0.2)
    assert driver.window.conversations.rows.rowCount() == 1


def test_an_empty_conversation_is_gone_back_to(driver: Driver, make_pdf: Callable[..., Path]) -> None:
    empty = driver.window.controller.on_screen
    chats = driver.desktop.workspace.chats
    other, drafted = chats.new("Berths"), chats.new()
    driver.desktop.workspace.conversations.set_draft(drafted.id, "And the fees?")
    driver.until(lambda: driver.window.conversations.rows.rowCount() == 3, "not listed")
    driver.choose(other.id)
    driver.new_conversation()
    assert driver.window.controller.on_screen == empty
    assert driver.window.conversations.rows.rowCount() == 3


def test_new_conversation_is_made_beside_one_with_documents(driver: Driver, make_pdf: Callable[..., Path]) -> None:
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 1)))
    driver.until(driver.documents, "not attached")
    driver.new_conversation()
    assert driver.window.conversations.rows.rowCount() == 2
    assert driver.documents() == ()


def test_the_document_one_looks_at_is_offered_to_an_empty_conversation(
    driver: Driver, make_pdf: Callable[..., Path]
) -> None:
    window = driver.window
    offered = window.chat._about
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 1)))
    driver.until(driver.documents, "not attached")
    (document,) = driver.documents()
    driver.new_conversation()
    window.open_document(document)
    driver.until(offered.isVisible, "not offered")
    assert "orchard.pdf" in offered.text()
    offered.click()
    driver.until(lambda: driver.documents() == (document,), "not attached")
    driver.until(offered.isHidden, "still offered")


def test_reader_follows_to_the_document_of_the_conversation(driver: Driver, make_pdf: Callable[..., Path]) -> None:
    reader = driver.window.reader

    def reading() -> int | None:
        return reader.current().document if reader.current() is not None else None

    conversations = []
    for name in ("orchard", "harbour"):
        conversations.append(driver.window.controller.on_screen)
        driver.add(make_pdf(f"{name}.pdf", long_pages(name, 5)))
        driver.until(driver.documents, "not attached")
        own = driver.documents()[0]
        driver.window.open_document(own)
        driver.until(lambda own=own: reading() == own, "not opened")
        reader._go_to_page(3)
        if name == "orchard":
            driver.new_conversation()
            assert reading() == own, "an empty conversation leaves the reader alone"
    driver.choose(conversations[0])
    driver.until(lambda: reading() == driver.documents()[0], "still at the other's document")
    driver.until(lambda: reader.view.page == 3, "another place")


def test_tab_goes_through_the_window_as_one_reads_it(driver: Driver, make_pdf: Callable[..., Path]) -> None:
    window = driver.window
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 2)))
    driver.until(lambda: window.reader.current(), "not open")
    window.chat.show_error(UserError("It failed.", "No disk.", "Make room."))
    window.activateWindow()
    window.conversations.search.setFocus()
    driver.wait(0.2)
    regions = (window.conversations, window.library, window.chat.header, window.chat, window.tabs, window.status)
    passed: list[int] = []
    while (here := QApplication.focusWidget()) is not window.conversations.search or not passed:
        passed.append(next(number for number, region in enumerate(regions) if region.isAncestorOf(here)))
        QTest.keyClick(here, Qt.Key.Key_Tab)
        assert len(passed) < 80
    around = passed.index(0, passed.index(5))  # buttons above the search field come last
    assert passed[:around] == sorted(passed[:around])
    assert set(passed) == set(range(6))
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Backtab)
    assert window.conversations.isAncestorOf(QApplication.focusWidget())


def test_what_has_the_focus_can_be_seen(driver: Driver) -> None:
    """A picture of each stop of the Tab key differs from one without the focus, more than by a cursor."""
    window = driver.window
    store, here = driver.desktop.workspace.conversations, window.controller.on_screen
    store.append(here, "user", "Compare?", Tokens())
    store.append(here, "assistant", "| a | b |\n|---|---|\n| 1 | 2 |\n\n```\nx = 1\n```\nProse.", Tokens())
    window.controller.look_again()
    driver.until(lambda: len(window.chat.transcript.messages()) == 2, "not shown")
    window.activateWindow()
    for widget in focus_order((window.conversations, window.library, window.chat, window.tabs, window.status)):
        widget.setFocus(Qt.FocusReason.TabFocusReason)
        driver.wait(0.05)
        shown = window.grab().toImage()
        widget.clearFocus()
        driver.wait(0.05)
        assert _differing(shown, window.grab().toImage()) > 60, (widget, widget.accessibleName())


def _differing(one: QImage, other: QImage) -> int:
    first, second = (np.frombuffer(image.constBits(), np.uint32) for image in (one, other))
    return int((first != second).sum())


def test_each_conversation_has_its_own_place_in_a_document(driver: Driver, make_pdf: Callable[..., Path]) -> None:
    window, first = driver.window, driver.window.controller.on_screen
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 9)))
    driver.until(lambda: window.reader.current(), "its document is not open by itself")
    window.reader._go_to_page(6)
    second = driver.new_conversation()
    window.controller.changing.attach(window.library.rows.documents()[0].id)
    driver.until(driver.documents, "not attached")
    window.reader._go_to_page(2)
    driver.choose(first)
    driver.until(lambda: window.reader.view.page == 6, "the other's place")
    driver.choose(second)
    driver.until(lambda: window.reader.view.page == 2, "the other's place")
    assert list(window.state().read) == [first, second]


def test_conversation_used_last_is_known_without_a_quit(driver: Driver, tmp_path: Path) -> None:
    first = driver.window.controller.on_screen
    made = driver.desktop.workspace.chats.new()
    driver.window.put_conversation(made)
    driver.choose(made.id)
    file = driver.desktop._state_file
    driver.until(lambda: load_state(file).conversation == made.id, "not stored")
    driver.choose(first)
    driver.until(lambda: load_state(file).conversation == first, "not stored")


def test_draft_and_place_come_back(qapp: QApplication, tmp_path: Path, make_pdf: Callable[..., Path]) -> None:
    first = Driver(qapp, tmp_path / "home")
    try:
        first.show()
        first.desktop.workspace.update_settings(fetch_embedder=False)
        first.add(make_pdf("orchard.pdf", long_pages("orchard", 9)))
        first.window.open_document(first.window.library.rows.documents()[0].id)
        first.until(lambda: first.window.reader.current(), "not opened")
        first.window.reader._go_to_page(6)
        first.window.tabs.setCurrentIndex(1)
        first.window.resize(1100, 720)
        first.window.chat.composer.editor.setPlainText("half a question")
    finally:
        first.quit()
    second = Driver(qapp, tmp_path / "home")
    try:
        second.show()
        second.until(lambda: second.window.reader.current(), "the reader is empty")
        assert second.window.chat.composer.text() == "half a question"
        assert second.window.reader.view.page == 6
        assert second.window.tabs.currentIndex() == 1
        assert second.window.height() == 720  # the offscreen screen is too narrow for the width
    finally:
        second.quit()


def test_nothing_is_called_gone_or_empty_before_it_was_read(qapp: QApplication, tmp_path: Path) -> None:
    driver = Driver(qapp, tmp_path / "home")
    window = driver.window
    try:
        assert window._chips((7,)) == (), "the library was not read yet"
        assert window.chat._middle.currentWidget() is window.chat.transcript, "the messages were not read yet"
        driver.show()
        driver.until(lambda: window.library.rows.is_read, "the library is not read")
        assert [face.gone for face in window._chips((7,))] == ["no longer there"]
        assert window.chat._middle.currentWidget() is window.chat._empty_page
    finally:
        driver.quit()


def test_damaged_window_state_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "window.json"
    assert load_state(file) == WindowState()
    file.write_text('{"tab": "three", "conversation": "c", "page": 4, "new": 1}')
    assert load_state(file) == WindowState(conversation="c", page=4)
    file.write_text("{")
    assert load_state(file) == WindowState()
    save_state(file, WindowState(splitters=("a", "b"), place=12))
    assert load_state(file) == WindowState(splitters=("a", "b"), place=12)


def test_preferences_act_at_once(driver: Driver) -> None:
    driver.window.dialogs.preferences()
    dialog = driver.window.dialogs.shown
    assert isinstance(dialog, PreferencesDialog)
    by_name = {widget.accessibleName(): widget for widget in dialog.findChildren(QWidget)}
    by_name["Temperature"].setValue(0.15)
    by_name["Longest answer"].setValue(99)
    by_name["Memory for state"].setValue(1.5)
    by_name["Theme"].setCurrentIndex(2)
    assert driver.desktop.theme.is_dark
    settings = driver.desktop.workspace
    driver.until(lambda: settings.settings.sampling.temperature == 0.15, "not stored")
    assert settings.settings.sampling.max_tokens == 99
    assert settings.settings.engine.ram_budget_bytes == 1_500_000_000
    text = by_name["Text per question"]
    assert text.text() == "automatic"
    text.stepUp()
    assert text.value() == 128
    text.stepDown()
    assert text.text() == "automatic"
    by_name["Stop where this is written"].setPlainText("END\n\nThe end.")
    driver.until(lambda: settings.settings.sampling.stop == ("END", "The end."), "not stored")
    assert settings.settings.passage_tokens == 0
    by_name["Theme"].setCurrentIndex(1)
    dialog.close()


def test_every_control_has_a_name(driver: Driver) -> None:
    controls = driver.window.findChildren(QAbstractButton) + driver.window.findChildren(QLineEdit)
    unnamed = [
        control
        for control in controls
        if not (control.accessibleName() or getattr(control, "text", str)() or control.parent() is None)
        and not control.objectName().startswith("qt_")
        and not isinstance(control.parent(), QLineEdit | QTabBar)
    ]
    assert unnamed == []


def test_listed_shortcuts_exist(driver: Driver) -> None:
    from PySide6.QtGui import QAction, QKeySequence, QShortcut

    known = {shortcut.key().toString() for shortcut in driver.window.findChildren(QShortcut)}
    known |= {action.shortcut().toString() for action in driver.window.findChildren(QAction)}
    known |= {"Return", "Enter", "Shift+Enter", "Shift+Return", "Up", "Menu", "Shift+F10"}  # of single widgets
    listed = [
        part for _, entries in SHORTCUTS for keys, _ in entries for part in keys.replace(" or ", " / ").split(" / ")
    ]
    assert [keys for keys in listed if QKeySequence(keys).toString() not in known] == []


def test_shortcuts_are_all_in_sight_and_the_focus_comes_back(driver: Driver, qtbot: QtBot) -> None:
    driver.window.resize(1280, 900)
    editor = driver.window.chat.composer.editor
    editor.setFocus()
    driver.until(lambda: QApplication.focusWidget() is editor, "no focus")
    driver.window.dialogs.shortcuts()
    dialog = driver.window.dialogs.shown
    driver.until(dialog.isActiveWindow, "not shown")
    driver.wait(0)
    scroll = dialog.findChild(FittingScroll)
    assert scroll.verticalScrollBar().maximum() == 0, "there is room for all of it"
    right = max(text.mapTo(scroll, text.rect().topRight()).x() for text in scroll.findChildren(QLabel))
    assert right + SCROLL_BAR < scroll.width(), "also beside a scroll bar"
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    driver.until(lambda: QApplication.focusWidget() is editor, "the focus is lost")


def test_closing_returns_at_once_and_ends_once_all_is_saved(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, closing, close = threading.Event(), threading.Event(), driver.desktop.workspace.close

    def slowly(*given: object) -> bool:
        closing.set()
        assert go_on.wait(60)
        return close(*given)

    monkeypatch.setattr(driver.desktop.workspace, "close", slowly)
    driver.window.close()
    assert not driver.window.isVisible()
    driver.until(closing.is_set, "it does not begin")
    assert not driver.ended
    go_on.set()
    driver.until(lambda: driver.ended, "it does not end")


def test_sample_document_is_one_click_away(driver: Driver) -> None:
    driver.window.chat.sample_wanted.emit()
    driver.until(driver.documents, "the sample was not attached")
    assert list(driver.window.library.rows.names().values()) == ["pagekeep-sample.pdf"]


def test_keys_reach_what_they_name(driver: Driver, qtbot: QtBot) -> None:
    window = driver.window
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    control, none = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.NoModifier
    qtbot.keyClick(window, Qt.Key.Key_K, control)
    assert window.conversations.search.hasFocus()
    qtbot.keyClicks(window.conversations.search, "zzz")
    qtbot.keyClick(window.conversations.search, Qt.Key.Key_Escape)
    assert window.conversations.search.text() == ""
    qtbot.keyClick(window, Qt.Key.Key_L, control)
    assert window.chat.composer.editor.hasFocus()
    qtbot.keyClick(window, Qt.Key.Key_3, Qt.KeyboardModifier.AltModifier)
    assert window.tabs.currentIndex() == 2
    for key, modifier, title in (
        (Qt.Key.Key_F1, none, "Keyboard shortcuts"),
        (Qt.Key.Key_Comma, control, "Preferences"),
        (Qt.Key.Key_M, control, "Models"),
    ):
        qtbot.keyClick(window, key, modifier)
        assert window.dialogs.shown.windowTitle() == title
        window.dialogs.shown.close()
        qtbot.waitUntil(window.isActiveWindow)
