"""Where the reader left the window: a small JSON file in the state folder. Losing it loses nothing else."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray

from app.core.paths import write_atomically

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WindowState:
    """`geometry` and `splitters` are Qt's own blobs in base64. `place`: see Transcript.place."""

    geometry: str = ""
    splitters: tuple[str, ...] = ()
    tab: int = 0
    theme: str = "system"
    conversation: str = ""
    place: int | None = None
    document: int | None = None
    page: int = 0
    fraction: float = 0.0
    zoom: float = 0.0  # 0: fits the width
    outline: bool = False
    read: dict[str, Any] = field(default_factory=dict)  # see Reading.state

    @staticmethod
    def from_json(data: dict[str, Any]) -> WindowState:
        """Ignores what this version does not know or what has another type."""
        defaults = WindowState()
        known = {}
        for one in fields(WindowState):
            value = data.get(one.name)
            if isinstance(value, list):
                value = tuple(value)
            default = getattr(defaults, one.name)
            if value is not None and (default is None or isinstance(value, type(default))):
                known[one.name] = value
        return WindowState(**known)


def load_state(path: Path) -> WindowState:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return WindowState()
    return WindowState.from_json(data) if isinstance(data, dict) else WindowState()


def save_state(path: Path, state: WindowState) -> None:
    try:
        write_atomically(path, json.dumps(asdict(state)).encode())
    except OSError as error:
        log.warning("window state not saved: %s", error)


def text_of(blob: QByteArray) -> str:
    return bytes(blob.toBase64().data()).decode()


def blob_of(text: str) -> QByteArray:
    return QByteArray.fromBase64(text.encode())
