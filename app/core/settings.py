"""Preferences: one frozen dataclass, one JSON file, swapped in atomically.

Keys that this version does not know are kept, so that going back a version loses nothing. A damaged file is
moved aside and the defaults are used; the caller is told by a notice.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from app.core.events import Notice
from app.core.paths import write_atomically
from engine.messages import EngineSettings, Sampling

Record = TypeVar("Record", EngineSettings, Sampling)


@dataclass(frozen=True)
class Settings:
    """What the reader chose. Sizes in tokens.

    Attributes:
        model: the GGUF that is loaded at start, None before the first choice.
        known_models: GGUF files outside Pagekeep's own folder that the reader opened.
        sampling: how answers are sampled; a stored seed of 0 still gives every answer its own random numbers.
        passage_tokens: how much text is found for one question; 0: by the model's context.
        passages: how many passages at most.
        answer_reserve: room kept free for answers and later questions when documents are placed.
        whole_tokens: the longest document that automatic mode reads whole, 0: whatever fits the context.
        limit_citations: whether a model can only write numbers of passages that are in its context.
        read_ahead: whether documents are read by the model before anybody asks (never on battery).
        embedder: folder of the sentence-transformers model that finds by meaning; None: Pagekeep's own choice.
        fetch_embedder: whether the first import may download the small model that finds by meaning.
        extra: keys of another version, kept as they are.
    """

    model: Path | None = None
    known_models: tuple[Path, ...] = ()
    engine: EngineSettings = field(default_factory=EngineSettings)
    sampling: Sampling = field(
        default_factory=lambda: Sampling(temperature=0.2, repetition_penalty=1.1, penalty_window=128)
    )
    passage_tokens: int = 0
    passages: int = 5
    answer_reserve: int = 1024
    whole_tokens: int = 0
    limit_citations: bool = False
    read_ahead: bool = True
    embedder: Path | None = None
    fetch_embedder: bool = True
    extra: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        extra = data.pop("extra")
        data["model"] = None if self.model is None else str(self.model)
        data["embedder"] = None if self.embedder is None else str(self.embedder)
        data["known_models"] = [str(path) for path in self.known_models]
        return {**extra, **data}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Settings:
        """Raises TypeError or ValueError where a known key holds something else than it should."""
        if not isinstance(data, dict):
            raise ValueError("not a JSON object")
        known = {f.name for f in fields(Settings)} - {"extra"}
        plain = {key: _checked_number(key, data[key]) for key in known & data.keys() if key not in _STRUCTURED}
        model, embedder = data.get("model"), data.get("embedder")
        return Settings(
            model=None if model is None else Path(model),
            embedder=None if embedder is None else Path(embedder),
            known_models=tuple(Path(path) for path in data.get("known_models", ())),
            engine=_record(EngineSettings(), data.get("engine", {})),
            sampling=_record(Settings().sampling, data.get("sampling", {})),
            extra={key: value for key, value in data.items() if key not in known},
            **plain,
        )


_STRUCTURED = frozenset({"model", "embedder", "known_models", "engine", "sampling"})


def _checked_number(key: str, value: object) -> Any:
    default = getattr(Settings(), key)
    if type(value) is not type(default):
        raise ValueError(f"{key} should be {type(default).__name__}")
    return value


def _record(defaults: Record, data: dict[str, Any]) -> Record:
    known = {f.name: getattr(defaults, f.name) for f in fields(defaults)}
    values = {key: value for key, value in data.items() if key in known}
    for key, value in values.items():
        values[key] = _like(key, value, known[key])
    return replace(defaults, **values)


def _like(key: str, value: Any, default: Any) -> Any:
    if isinstance(default, tuple):
        return tuple(str(item) for item in value)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise ValueError(f"{key} should be {type(default).__name__}")
    return value


def load_settings(path: Path, else_: str = "the defaults are used") -> tuple[Settings, Notice | None]:
    """The stored preferences, or the defaults with the reason why. `else_`: what holds then, in words."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings(), None
    except (OSError, UnicodeDecodeError) as error:
        return Settings(), _set_aside(path, str(error), else_)
    try:
        return Settings.from_json(json.loads(text)), None
    except (ValueError, TypeError, AttributeError) as error:
        return Settings(), _set_aside(path, str(error), else_)


class StoredSettings:
    """The preferences of a data folder, as this process runs with them; thread-safe.

    Attributes:
        current: what holds now; notice: why the stored ones could not be read.
    """

    def __init__(
        self, path: Path, given: Settings | None = None, on_notice: Callable[[Notice], None] = lambda notice: None
    ) -> None:
        """`given` holds in place of what is stored, and is not stored. `on_notice`: the file was found damaged later
        on; called on the thread that found it, and nothing changes for this process."""
        self._follows, self._seen = given is None, _stamp(path)
        stored, self.notice = load_settings(path)
        self.current = stored if given is None else given
        self._path = path
        self._on_notice = on_notice
        self._lock = threading.Lock()

    def embedder(self) -> Path | None:
        """As it is stored now: another process may have switched the search to another one."""
        notice = None
        with self._lock:
            stamp = _stamp(self._path)
            if self._follows and stamp != self._seen:
                self._seen = stamp
                stored, notice = self._stored()
                self.current = replace(self.current, embedder=stored.embedder)
            embedder = self.current.embedder
        self._tell(notice)
        return embedder

    def change(self, change: Callable[[Settings], Settings]) -> Settings:
        """Applied to what is stored now: another process may have changed other preferences."""
        with self._lock:
            stored, notice = self._stored()
            save_settings(self._path, change(stored))
            self.current = changed = change(self.current)
        self._tell(notice)
        return changed

    def _stored(self) -> tuple[Settings, Notice | None]:
        """What is in the file now; what this process runs with where that is gone or cannot be read."""
        stored, notice = load_settings(self._path, "those in use stay")
        there = notice is None and self._path.exists()
        return stored if there or not self._follows else self.current, notice

    def _tell(self, notice: Notice | None) -> None:
        """Without the lock: a listener may look at the preferences."""
        if notice is not None:
            self._on_notice(notice)


def _stamp(path: Path) -> int:
    """Changes with the file; 0 while there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _set_aside(path: Path, reason: str, else_: str) -> Notice:
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        path.replace(aside)
        kept = f"The old file is kept as {aside.name}."
    except OSError:
        kept = "The old file could not be moved aside."
    return Notice(f"The preferences could not be read; {else_}.", reason, kept)


def save_settings(path: Path, settings: Settings) -> None:
    """Raises OSError where the disk says no; the old file is then as it was."""
    write_atomically(path, json.dumps(settings.to_json(), indent=2, ensure_ascii=False).encode())
