"""What every feature of the window is given: the workspace, and how to reach it off the main thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.engine_bridge import EngineBridge
from app.tasks import Tasks
from app.widgets.theme import Theme
from app.widgets.toast import Toasts

if TYPE_CHECKING:
    from app.core.workspace import Workspace


@dataclass(frozen=True)
class Services:
    workspace: Workspace
    tasks: Tasks
    events: EngineBridge
    theme: Theme
    toasts: Toasts
