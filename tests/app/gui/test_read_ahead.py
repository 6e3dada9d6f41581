"""Reading ahead as the reader sees it, in the real window with the real starter model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QCheckBox

from app.frame.activity import reading_words
from app.library.model import kept_bytes
from app.preferences.dialog import PreferencesDialog
from app.widgets.rows import FACE
from engine.messages import (
    DocumentProgress,
    DocumentRead,
    DocumentStopped,
    ModelLoaded,
    PrefillDocument,
    StopDocument,
)
from engine.store.tools import StoreTools
from tests.app.gui.driver import Driver
from tests.app.gui.pdf_files import long_pages
from tests.app.held import held_until
from tests.engine.engine_driver import Driver as EngineDriver
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)

MakePdf = Callable[..., Path]


@pytest.fixture
def driver(qapp: QApplication, tmp_path: Path, starter_model: Path) -> Iterator[Driver]:
    made = Driver(qapp, tmp_path / "home")
    try:
        made.show()
        made.desktop.workspace.update_settings(fetch_embedder=False)
        made.use_model(starter_model)
        yield made
    finally:
        made.quit()


def detail(driver: Driver) -> str:
    rows = driver.window.library.rows
    return rows.data(rows.index(0), FACE).detail


@pytest.mark.model
def test_it_is_shown_while_it_runs_and_when_it_is_done(driver: Driver, make_pdf: MakePdf) -> None:
    status, seen = driver.window.status, []
    driver.desktop.bridge.document_progress.connect(lambda event: seen.append(status._activity.toolTip()))
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 3)))
    driver.until(lambda: ", read" in detail(driver), "it was not read")
    assert re.fullmatch(r"3 pages, read in [\d.]+ m?s, [\d.]+ MB", detail(driver))
    assert any(re.match(r"reading orchard\.pdf ahead: [\d,]+ of [\d,]+ tokens", words) for words in seen)
    driver.until(lambda: not status._activity.toolTip(), "the activity stays")
    assert not status._cancel.isVisible()


@pytest.mark.model
def test_it_is_paused_and_goes_on_by_its_button(
    driver: Driver, make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_until(monkeypatch, StopDocument, 2)
    status, stopped = driver.window.status, []
    driver.desktop.bridge.document_stopped.connect(stopped.append)
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 5)))
    driver.until(lambda: status._cancel.isVisible() and "ahead" in status._activity.toolTip(), "it does not begin")
    assert status._cancel.accessibleName() == "Stop reading ahead"
    status._cancel.click()
    driver.until(lambda: stopped, "it does not stop")
    (event,) = stopped
    assert isinstance(event, DocumentStopped)
    assert event.done < event.total
    driver.until(lambda: "paused at" in status._activity.toolTip(), "it is not said")
    assert ", read" not in detail(driver)
    assert status._cancel.accessibleName() == "Go on reading ahead"
    begun: list[DocumentProgress] = []
    driver.desktop.bridge.document_progress.connect(begun.append)
    status._cancel.click()
    driver.until(lambda: ", read" in detail(driver), "it does not go on")
    assert begun[0].done >= event.done, "it goes on where it was"
    driver.until(lambda: not status._cancel.isVisible(), "the button stays")


def test_words_of_the_activity() -> None:
    event = DocumentProgress("3", "gnuplot.pdf", 1200, 6400, 0, 4.0, 12.4, 0)
    assert reading_words(event) == "reading gnuplot.pdf ahead: 1,200 of 6,400 tokens, 12 s left"
    full = DocumentProgress("3", "gnuplot.pdf", 1200, 6400, 0, 4.0, 0.0, 0, "The disk is full.")
    assert reading_words(full) == "reading gnuplot.pdf ahead: 1,200 of 6,400 tokens, not saved: The disk is full."
    unknown = DocumentProgress("3", "gnuplot.pdf", 0, 6400, 0, 0.0, 0.0, 0)
    assert reading_words(unknown) == "reading gnuplot.pdf ahead: 0 of 6,400 tokens"


def test_the_preference_is_a_box_to_tick(qapp: QApplication, tmp_path: Path) -> None:
    driver = Driver(qapp, tmp_path / "home")
    try:
        driver.show()
        driver.window.dialogs.preferences()
        dialog = driver.window.dialogs.shown
        assert isinstance(dialog, PreferencesDialog)
        (box,) = (b for b in dialog.findChildren(QCheckBox) if b.text() == "Read documents ahead")
        assert box.isChecked()
        box.click()
        workspace = driver.desktop.workspace
        driver.until(lambda: not workspace.settings.read_ahead, "not stored")
        dialog.close()
    finally:
        driver.quit()


def test_what_a_document_takes_is_what_the_command_line_says(model: Path, tmp_path: Path) -> None:  # noqa: F811
    tokens = prompt(3000, 5)
    with EngineDriver(model, tmp_path) as engine:
        engine.client.send(PrefillDocument("1", tokens))
        engine.wait(lambda event: isinstance(event, DocumentRead))
        loaded = engine.loaded
    assert isinstance(loaded, ModelLoaded)
    with StoreTools(tmp_path) as tools:
        (entry,) = tools.ls()
    assert 0 <= entry.bytes - kept_bytes(3000, loaded) <= 4096, "the end's record is rounded up"
