"""Models on this machine, the starter, files from disk, and models from Hugging Face."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from app.core import events
from app.core.errors import UserError, as_user_error
from app.models.fetch import FetchView
from app.models.words import plain_error
from app.services import Services
from app.widgets.cards import ErrorCard, button, label
from app.widgets.format import count
from app.widgets.layouts import clear_layout
from app.widgets.rows import FACE, RowFace, RowList
from engine.messages import ModelFailed, ModelLoaded, ModelLoading
from engine.models.naming import readable_name
from rag.sizes import size_text

if TYPE_CHECKING:
    from app.core.catalog import ModelEntry

_ORIGINS = {"starter": "starter model", "hub": "from Hugging Face", "file": "file on disk"}


def entry_face(entry: ModelEntry) -> RowFace:
    if not entry.present:
        return RowFace(entry.name, "the file is gone", "warning", "warn", "warn")
    detail = f"{size_text(entry.bytes)}, {_ORIGINS[entry.origin]}"
    if entry.chosen:
        return RowFace(entry.name, f"{detail}, in use", "exact", "good")
    return RowFace(entry.name, detail, "model")


class ModelsModel(QAbstractListModel):
    def __init__(self) -> None:
        super().__init__()
        self._entries: Sequence[ModelEntry] = ()

    def show_entries(self, entries: Sequence[ModelEntry]) -> None:
        self.beginResetModel()
        self._entries = entries
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return len(self._entries)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        entry = self._entries[index.row()]
        if role == FACE:
            return entry_face(entry)
        if role == Qt.ItemDataRole.DisplayRole:
            return entry_face(entry).title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{entry_face(entry).title}, {entry_face(entry).detail}"
        return str(entry.path) if role == Qt.ItemDataRole.ToolTipRole else None

    def at(self, row: int) -> ModelEntry | None:
        return self._entries[row] if 0 <= row < len(self._entries) else None


class ModelsDialog(QDialog):
    def __init__(
        self,
        services: Services,
        loaded: ModelLoaded | None,
        loading: ModelLoading | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """`loading`: what is being loaded at this moment."""
        super().__init__(parent)
        self._services = services
        self.setWindowTitle("Models")
        self.resize(620, 560)
        self._current = label("", "title")
        self._detail = label("", "muted")
        self._is_loaded = False
        self._is_fetching = False
        self._use = button("Use this model", self.use_selected, "primary")
        self._remove = button("Remove", self.remove_selected, tip="The file stays where it is unless Pagekeep got it")
        self._starter = button("Get the starter model (98 MB)", lambda: self.fetch("starter"))
        self._rows = ModelsModel()
        self._list = RowList(services.theme, "Models on this machine")
        self._list.setModel(self._rows)
        self._hub = QLineEdit(placeholderText="owner/repository/file.gguf")
        self._hub.setAccessibleName("Model on Hugging Face")
        self._messages = QVBoxLayout()
        self._fetch = FetchView(services)
        self._lay_out()
        self._connect()
        self._show_loaded(loaded)
        if loading is not None:
            self._loading(loading)
        self._fetch.running.connect(self._show_fetching)
        self.reload()

    def reload(self) -> None:
        catalog = self._services.workspace
        self._services.tasks.read(lambda: catalog.models.models(), self._show_entries)

    def _show_entries(self, entries: Sequence[ModelEntry]) -> None:
        """The one in use is marked; what can be done depends on the one that is marked."""
        selected = self._rows.at(self._list.currentIndex().row())
        self._rows.show_entries(entries)
        wanted = [n for n, one in enumerate(entries) if selected is not None and one.path == selected.path]
        wanted += [n for n, one in enumerate(entries) if one.chosen]
        self._list.setCurrentIndex(self._rows.index(wanted[0] if wanted else 0))
        self._allow()

    def _allow(self) -> None:
        entry = self._rows.at(self._list.currentIndex().row())
        in_use = entry is not None and entry.chosen and self._is_loaded
        self._use.setEnabled(entry is not None and entry.present and not in_use)
        self._use.setToolTip("It is in use" if in_use else "")
        self._remove.setEnabled(entry is not None and not entry.chosen)
        here = any(self._rows.at(row).is_starter for row in range(self._rows.rowCount()))
        self._starter.setEnabled(not (here or self._is_fetching))
        self._starter.setText("The starter model is here" if here else "Get the starter model (98 MB)")

    # --- actions ----------------------------------------------------------------------------------
    def use_selected(self) -> None:
        entry = self._rows.at(self._list.currentIndex().row())
        if entry is not None:
            self.load(entry.path)

    def load(self, path: Path) -> None:
        self._clear_messages()
        self._services.tasks.write(lambda: self._services.workspace.load_model(path), None, self._show_error)

    def choose_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(self, "Open a model", "", "GGUF models (*.gguf);;All files (*)")
        if name:
            self.load(Path(name))

    def remove_selected(self) -> None:
        entry = self._rows.at(self._list.currentIndex().row())
        if entry is None:
            return
        if entry.chosen:
            self._show_error(UserError("This model is in use.", "", "Use another one first."))
            return
        catalog = self._services.workspace
        self._services.tasks.write(lambda: catalog.models.forget(entry.path), lambda _: self.reload(), self._show_error)

    def fetch(self, what: str) -> None:
        self._clear_messages()
        self._fetch.start(what)

    def _fetch_hub(self) -> None:
        if self._hub.text().strip():
            self.fetch(self._hub.text().strip())

    # --- events -----------------------------------------------------------------------------------
    def _show_loaded(self, loaded: ModelLoaded | None) -> None:
        self._is_loaded = loaded is not None
        self._allow()
        if loaded is None:
            self._current.setText("No model is loaded")
            self._detail.setText("Choose one below, or get the starter model: small, and enough to try everything.")
            return
        self._current.setText(loaded.name)
        self._current.setToolTip(str(loaded.path))
        self._detail.setText(
            f"{loaded.architecture}, {size_text(loaded.weights_bytes)} of weights, "
            f"context {count(loaded.context)} tokens, "
            f"{size_text(loaded.kv_bytes_per_token)} of state per token. {'; '.join(loaded.devices)}"
        )
        self.reload()

    def _loading(self, event: ModelLoading) -> None:
        self._current.setText(f"Loading {readable_name(event.path)}")
        self._detail.setText(event.stage)

    def _failed(self, event: ModelFailed) -> None:
        self._show_loaded(self._services.workspace.loaded)
        self._show_error(UserError(event.what, event.why, event.next))

    def _show_error(self, error: Exception) -> None:
        self._clear_messages()
        card = ErrorCard(self._services.theme, plain_error(as_user_error(error)))
        self._messages.addWidget(card)

    def _clear_messages(self) -> None:
        clear_layout(self._messages)

    # --- building ---------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        actions = QHBoxLayout()
        for made in (self._use, button("Open a GGUF file…", self.choose_file), self._remove):
            actions.addWidget(made)
        actions.addStretch(1)
        actions.addWidget(self._starter)
        hub = QHBoxLayout()
        hub.addWidget(self._hub, 1)
        hub.addWidget(button("Get from Hugging Face", self._fetch_hub))
        close = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        close.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 14)
        layout.setSpacing(10)
        layout.addWidget(label("In use", "section"))
        layout.addWidget(self._current)
        layout.addWidget(self._detail)
        layout.addLayout(self._messages)
        layout.addWidget(self._fetch)
        layout.addSpacing(4)
        layout.addWidget(label("On this machine", "section"))
        layout.addWidget(self._list, 1)
        layout.addLayout(actions)
        layout.addSpacing(6)
        layout.addWidget(label("Another model", "section"))
        layout.addLayout(hub)
        layout.addWidget(label("Downloads go on where they stopped. Nothing is sent anywhere else.", "muted"))
        layout.addWidget(close)

    def _connect(self) -> None:
        events_ = self._services.events
        events_.model_loading.connect(self._loading)
        events_.model_loaded.connect(self._show_loaded)
        events_.model_failed.connect(self._failed)
        events_.fetch_done.connect(self._fetched)
        self._list.activated.connect(lambda _: self.use_selected())
        self._list.selectionModel().currentChanged.connect(lambda *_: self._allow())
        self._hub.returnPressed.connect(self._fetch_hub)
        self._fetch.failed.connect(self._show_error)

    def _show_fetching(self, is_fetching: bool) -> None:
        self._is_fetching = is_fetching
        self._allow()

    def _fetched(self, event: events.FetchDone) -> None:
        self.reload()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            return
        super().keyPressEvent(event)
