"""Settings of the engine that act only after the model is loaded again: reasoning, and a larger context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.engine_host import EngineHost
from app.core.errors import UserError
from app.core.settings import Settings, StoredSettings
from app.core.turns import Turns
from engine.messages import ConversationId, Reasoning

if TYPE_CHECKING:
    from engine.overflow import OverflowOption


class Reloads:
    """State is kept over a reload. `load` loads a model; None: the remembered choice."""

    def __init__(
        self, host: EngineHost, settings: StoredSettings, turns: Turns, load: Callable[[Path | None], None]
    ) -> None:
        self._host = host
        self._settings = settings
        self._turns = turns
        self._load = load

    def set_reasoning(self, wanted: Reasoning) -> None:
        """For all later answers. Raises UserError while one is written."""
        if self._turns.running():
            why = "An answer is being written, and the model has to be loaded again."
            raise UserError("Reasoning cannot be switched now.", why, "Wait for the answer, or stop it.")
        self._settings.change(lambda s: replace(s, engine=replace(s.engine, reasoning=wanted)))
        loaded = self._host.loaded
        self._load(loaded.path if loaded is not None else None)

    def enlarge(self, conversation: ConversationId, option: OverflowOption) -> None:
        """The context of `option`. Raises UserError while another conversation is answered. For LongRoPE models the
        other set of factors may count then, and all is computed again."""
        if any(running != conversation for running in self._turns.running()):
            why = "Another conversation is being answered, and the model has to be loaded again."
            raise UserError("The context cannot be changed now.", why, "Wait for that answer, or stop it.")
        in_use = self._settings.current.engine.context

        def larger(settings: Settings) -> Settings:
            """What is stored stays where it is automatic, and this process was only told to have less."""
            known = settings.engine.context
            context = 0 if in_use and not known else max(known, option.context)
            return replace(settings, engine=replace(settings.engine, context=context))

        self._settings.change(larger)
        self._load(self._host.gate.current().handle.info.path)
