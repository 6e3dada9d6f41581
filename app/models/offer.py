"""Shown in the chat while there is no model: what a model is for, and three ways to get one."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from app.core.errors import as_user_error
from app.models.fetch import FetchView
from app.models.words import plain_error
from app.services import Services
from app.widgets.cards import ErrorCard, button, label
from app.widgets.flow import FlowLayout
from app.widgets.layouts import clear_layout
from engine.models.naming import readable_name


class ModelOffer(QWidget):
    """Signals: manager_wanted (the model manager should open)."""

    manager_wanted = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self.setObjectName("offerCard")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._fetch = FetchView(services)
        self._fetch.failed.connect(self.show_error)
        self._fetch.running.connect(self._show_running)
        self._errors = QVBoxLayout()
        self._buttons = QWidget()
        row = FlowLayout(self._buttons)
        self._starter = button("Get the starter model (98 MB)", self.get_starter, "primary")
        row.addWidget(self._starter)
        row.addWidget(button("Open a GGUF file…", self._choose))
        row.addWidget(button("More…", self.manager_wanted.emit, "flat"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(18, 16, 18, 16)
        layout.setSpacing(8)
        layout.addWidget(label("A language model answers your questions, on this machine.", "title"))
        self._hint = label("There is none yet. The starter is small and quick; larger models answer better.", "muted")
        layout.addWidget(self._hint)
        layout.addLayout(self._errors)
        layout.addWidget(self._fetch)
        layout.addWidget(self._buttons)
        self.setMaximumWidth(560)

    def show_lost(self, model: Path) -> None:
        """`model`: the one that was used last; its file is gone."""
        self._hint.setText(
            f"{readable_name(model)}, the one in use, is no longer at {model}. Put it back and start again, "
            "open it where it is now, or get the starter."
        )

    def _show_running(self, is_running: bool) -> None:
        self._starter.setDisabled(is_running)

    def get_starter(self) -> None:
        self._clear()
        self._fetch.start("starter")

    def show_error(self, error: Exception) -> None:
        self._clear()
        self._errors.addWidget(ErrorCard(self._services.theme, plain_error(as_user_error(error))))

    def _choose(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Open a model", "", "GGUF models (*.gguf);;All files (*)")
        if name:
            self._clear()
            workspace = self._services.workspace
            self._services.tasks.write(lambda: workspace.load_model(Path(name)), None, self.show_error)

    def _clear(self) -> None:
        clear_layout(self._errors)
