"""The model in the window: chosen at the start, loading, loaded, failed, or none; each part is told what it means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.core.errors import UserError
from engine.messages import ModelFailed, ModelLoaded, ModelLoading
from engine.models.naming import readable_name

if TYPE_CHECKING:
    from app.window import Window


class ModelState:
    def __init__(self, window: Window) -> None:
        self._window = window
        self._services = window.services

    def start(self) -> None:
        """Loads the model that was used last."""
        models = self._services.workspace.models
        self._services.tasks.read(lambda: (models.chosen, models.lost), lambda found: self._choose(*found))

    def _choose(self, chosen: Path | None, lost: Path | None) -> None:
        """`lost`: the one that was used last, where its file is gone."""
        window, workspace = self._window, self._services.workspace
        window.status.show_chosen(chosen)
        if chosen is None:
            self._tell(False, "There is no model" if lost else "There is no model yet")
            window.chat.show_model(False, lost)
            return
        if lost is not None:
            gone = f"{readable_name(lost)} is no longer at {lost}"
            self._services.toasts.say(f"{gone}: {readable_name(chosen)} answers.", keep=True)
        self._tell(False, "The model is loading")
        self._services.tasks.write(lambda: workspace.load_model(), None, window.chat.show_model_error)

    def loading(self, event: ModelLoading) -> None:
        self._window.chat.show_model(True)
        self._tell(False, "The model is loading")

    def loaded(self, event: ModelLoaded) -> None:
        self._window.chat.show_model(True)
        self._tell(True, "")
        self._window.conversations.ask_states()
        self._window.cache.refresh()

    def failed(self, event: ModelFailed) -> None:
        chat, error = self._window.chat, UserError(event.what, event.why, event.next)
        kept = self._services.workspace.loaded is not None
        self._tell(kept, "" if kept else "There is no model")
        if not kept:
            chat.show_model_error(error)
        elif self._window.dialogs.shown is None:  # else it is told there
            chat.show_failure(error)

    def _tell(self, has_model: bool, why_not: str) -> None:
        self._window.controller.set_model(has_model, why_not)
