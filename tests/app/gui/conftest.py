"""A real workspace below a temporary folder, the real widgets, and PDFs made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from pytestqt.wait_signal import MultiSignalBlocker, SignalBlocker

from app.core.paths import Paths
from app.core.workspace import Workspace
from app.engine_bridge import EngineBridge
from app.services import Services
from app.tasks import Tasks
from app.widgets.theme import Theme
from app.widgets.toast import Toasts
from tests.app.gui.driver import LONGEST_S, ROUNDS

LONGEST_MS = round(1000 * LONGEST_S)

# The offscreen platform says this about every window with a minimum size.
OFFSCREEN_NOISE = "This plugin does not support propagateSizeHints"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.gui)
            item.add_marker(pytest.mark.qt_log_ignore(OFFSCREEN_NOISE))


class PatientBot(QtBot):
    """What must come is waited for as long as a very busy machine takes."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = LONGEST_MS) -> None:
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal: object, *, timeout: int = LONGEST_MS, **more: object) -> SignalBlocker:
        return super().waitSignal(signal, timeout=timeout, **more)

    def waitSignals(self, signals: list[object], *, timeout: int = LONGEST_MS, **more: object) -> MultiSignalBlocker:
        return super().waitSignals(signals, timeout=timeout, **more)

    def wait(self, ms: int) -> None:
        super().wait(ms)
        for _ in range(ROUNDS):  # what one event brings about comes with the next
            QApplication.processEvents()


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    return PatientBot(request)


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    made = Theme(qapp, "light")
    yield made
    made.deleteLater()


@pytest.fixture
def services(qtbot: QtBot, theme: Theme, tmp_path: Path) -> Iterator[Services]:
    """Everything a feature of the window is given; no model is loaded."""
    bridge, tasks = EngineBridge(), Tasks()
    workspace = Workspace(Paths.below(tmp_path / "home"), bridge.post)
    workspace.update_settings(fetch_embedder=False)
    host = QWidget()
    qtbot.addWidget(host)
    host.resize(800, 600)
    yield Services(workspace, tasks, bridge, theme, Toasts(host))
    tasks.close()
    workspace.close(60)
    bridge.close()


@pytest.fixture
def make_pdf(qapp: QApplication, tmp_path: Path) -> Callable[..., Path]:
    from tests.app.gui.pdf_files import write_pdf

    def make(name: str, pages: list[list[str]]) -> Path:
        return write_pdf(tmp_path / name, pages)

    return make
