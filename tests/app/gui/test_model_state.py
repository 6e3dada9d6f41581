"""The model in the window before it is loaded: offered, downloaded, loading, gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QLabel

from app.core.errors import UserError
from app.core.events import FetchDone, FetchFailed, FetchProgress, JobId
from app.models.fetch import FetchView
from app.models.offer import ModelOffer
from app.services import Services
from engine.messages import ModelLoading
from tests.app.gui.driver import Driver
from tests.app.gui.pdf_files import long_pages
from tests.engine.tiny_model import saved

MB = 1_000_000


@pytest.fixture
def driver(qapp: QApplication, tmp_path: Path) -> Iterator[Driver]:
    made = Driver(qapp, tmp_path / "home")
    made.show()
    made.desktop.workspace.update_settings(fetch_embedder=False)
    yield made
    made.quit()


def words(offer: ModelOffer) -> str:
    return " ".join(label.text() for label in offer.findChildren(QLabel))


def test_the_composer_has_the_focus_of_what_disappears(driver: Driver, make_pdf: Callable[..., Path]) -> None:
    window = driver.window
    driver.until(window.chat.offer_place.isVisible, "no offer")
    window.activateWindow()
    window.chat.offer._starter.setFocus()
    driver.until(window.chat.offer._starter.hasFocus, "no focus")
    window.chat.show_model(True)
    driver.until(window.chat.composer.editor.hasFocus, "the trash had it")
    window.chat._adding[1].setFocus()
    driver.until(window.chat._adding[1].hasFocus, "no focus")
    driver.add(make_pdf("orchard.pdf", long_pages("orchard", 1)))
    driver.until(driver.documents, "not attached")
    driver.until(window.chat.composer.editor.hasFocus, "what is typed next goes nowhere")


def test_a_model_whose_file_is_gone_is_named(qapp: QApplication, tmp_path: Path) -> None:
    model = saved(tmp_path, {})
    first = Driver(qapp, tmp_path / "home")
    try:
        first.show()
        first.use_model(model)
        first.until(lambda: first.desktop.workspace.settings.model == model, "not remembered")
    finally:
        first.quit()
    model.rename(tmp_path / "moved.gguf")
    second = Driver(qapp, tmp_path / "home")
    try:
        second.show()
        second.until(second.window.chat.offer_place.isVisible, "no offer")
        said = words(second.window.chat.offer).replace("\u200b", "")
        assert str(model) in said
        assert "There is none yet" not in said
    finally:
        second.quit()


def test_models_says_what_is_loading(driver: Driver) -> None:
    window = driver.window
    window.services.events.model_loading.emit(ModelLoading(Path("/models/Orchard-3B-Q4_0.gguf"), "reading header"))
    window.dialogs.models()
    assert "Loading Orchard" in window.dialogs.shown._current.text()
    window.dialogs.shown.close()


def test_nothing_is_said_of_a_model_before_it_is_known(services: Services) -> None:
    from app.frame.status import StatusBar

    bar = StatusBar(services)
    assert "No model" not in bar._model.text()
    bar.show_chosen(None)
    assert "No model" in bar._model.text()
    bar.show_chosen(Path("/models/Orchard-3B-Q4_0.gguf"))
    assert "Loading Orchard" in bar._model_forms[0]


def said(view: FetchView) -> str:
    return view._words.text().replace("\u00a0", " ")


@pytest.fixture
def view(services: Services, monkeypatch: pytest.MonkeyPatch) -> FetchView:
    monkeypatch.setattr(services.workspace.fetches, "submit", lambda what: JobId(f"job of {what}"))
    return FetchView(services)


def test_one_download_is_followed_though_another_runs(
    view: FetchView, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = JobId("starter"), JobId("embedder")
    running: list[bool] = []
    view.running.connect(running.append)
    progress = services.events.fetch_progress
    progress.emit(FetchProgress(own, "starter", 10 * MB, 100 * MB))
    progress.emit(FetchProgress(other, "search by meaning", 1 * MB, 80 * MB))
    assert "starter" in view._words.text()
    monkeypatch.setattr(view._clock, "elapsed", lambda: 2000)
    progress.emit(FetchProgress(own, "starter", 30 * MB, 100 * MB))
    assert "10.0 MB/s, ~7 s left" in said(view)
    services.events.fetch_done.emit(FetchDone(other, "search by meaning", Path("embedder")))
    assert not view.isHidden()
    services.events.fetch_done.emit(FetchDone(own, "starter", Path("starter.gguf")))
    assert view.isHidden()
    assert running == [True, False]


def test_a_speed_is_told_of_a_download_begun_here(
    view: FetchView, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    view._started(JobId("starter"))
    services.events.fetch_progress.emit(FetchProgress(JobId("starter"), "starter", 40 * MB, 100 * MB))
    monkeypatch.setattr(view._clock, "elapsed", lambda: 1000)
    services.events.fetch_progress.emit(FetchProgress(JobId("starter"), "starter", 50 * MB, 100 * MB))
    assert "10.0 MB/s" in said(view)


def test_a_failure_that_is_quicker_than_its_beginning_is_the_end(view: FetchView, services: Services) -> None:
    failed: list[UserError] = []
    view.failed.connect(failed.append)
    view._wanted = "starter"
    services.events.fetch_failed.emit(FetchFailed(JobId("starter"), "starter", UserError("No network.")))
    view._started(JobId("starter"))
    assert [error.what for error in failed] == ["No network."]
    assert view.isHidden()
    assert view._job is None


def test_the_starter_is_not_fetched_twice(services: Services) -> None:
    offer = ModelOffer(services)
    services.events.fetch_progress.emit(FetchProgress(JobId("starter"), "starter", 10 * MB, 100 * MB))
    assert not offer._starter.isEnabled()
    services.events.fetch_failed.emit(FetchFailed(JobId("starter"), "starter", None))
    assert offer._starter.isEnabled()
