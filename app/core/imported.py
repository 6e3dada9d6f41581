"""States that came from another machine without their conversation: the names of the files they came in.

They lie beside the state itself, in the cache folder: when that vanishes there is nothing left to be named.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from app.core.paths import write_atomically

FILE = "imported.json"


def imported_names(cache: Path) -> dict[str, str]:
    """By conversation id; what cannot be read is not named."""
    try:
        found = json.loads((cache / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: name for key, name in found.items() if isinstance(name, str)} if isinstance(found, dict) else {}


def forget_imported(cache: Path, conversation: str) -> None:
    """It was removed: the name is free again."""
    names = imported_names(cache)
    if names.pop(conversation, None) is not None:
        _write(cache, names)


def note_imported(cache: Path, conversation: str, name: str, kept: Collection[str]) -> None:
    """`kept`: all that the store keeps something of; other names are forgotten."""
    names = {key: value for key, value in imported_names(cache).items() if key in kept}
    _write(cache, {**names, conversation: name})


def _write(cache: Path, names: dict[str, str]) -> None:
    write_atomically(cache / FILE, json.dumps(names, indent=2, ensure_ascii=False).encode())
