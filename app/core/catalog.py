"""Models on this machine: what Pagekeep fetched, what the reader opened, and which one is in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from app.core.downloads import IsCancelled, OnBytes, never, silent
from app.core.errors import UserError
from app.core.hub import HubFile, fetch_from_hub
from app.core.settings import Settings
from app.core.starter import STARTER_FILE, fetch_starter, starter_path
from engine.models.naming import readable_name

Origin = Literal["starter", "hub", "file"]
Change = Callable[[Callable[[Settings], Settings]], Settings]


@dataclass(frozen=True)
class ModelEntry:
    """`chosen`: loaded at start. `present` False: the file the reader opened is gone."""

    path: Path
    name: str
    bytes: int
    origin: Origin
    chosen: bool
    present: bool = True

    @property
    def is_starter(self) -> bool:
        """Fetched, or the same file opened from elsewhere."""
        return self.present and (self.origin == "starter" or self.path.name == STARTER_FILE)


@dataclass(frozen=True)
class ModelInfo:
    """What the header of a GGUF says; nothing of the weights is read. Sizes in tokens, channels and bytes."""

    path: Path
    name: str
    architecture: str
    context: int
    layers: int
    channels: int
    vocabulary: int
    parameters: int
    weights_bytes: int
    tensor_types: tuple[tuple[str, int], ...]
    warnings: tuple[str, ...]


class ModelCatalog:
    """`change` stores changed preferences; the choice and the opened files are part of them. Thread-safe."""

    def __init__(self, models: Path, settings: Callable[[], Settings], change: Change) -> None:
        self._models = models
        self._settings = settings
        self._change = change

    @property
    def chosen(self) -> Path | None:
        """The remembered choice while its file exists, else the starter model when it is there."""
        model = self._settings().model
        if model is not None and model.is_file():
            return model
        starter = starter_path(self._models)
        return starter if starter.is_file() else None

    @property
    def lost(self) -> Path | None:
        """The remembered choice where its file is gone."""
        model = self._settings().model
        return None if model is None or model.is_file() else model

    def models(self) -> tuple[ModelEntry, ...]:
        """Everything known, in the order of names."""
        own = sorted(p for p in self._models.rglob("*.gguf") if ".fetch" not in p.parts)
        opened = [p for p in self._settings().known_models if p not in own]
        chosen = self.chosen
        return tuple(self._entry(path, chosen) for path in (*own, *opened))

    def choose(self, path: Path) -> Path:
        """Remembers a GGUF file for the next start; it stays where it is. Raises UserError, EngineError."""
        path = path.expanduser().absolute()
        self.info(path)
        self.remember(path)
        return path

    def remember(self, path: Path) -> None:
        """As `choose` for a file that has been loaded already."""
        own = path.is_relative_to(self._models)

        def changed(settings: Settings) -> Settings:
            known = settings.known_models
            known = known if own or path in known else (*known, path)
            return replace(settings, model=path, known_models=known)

        self._change(changed)

    def forget(self, path: Path) -> None:
        """Takes an opened file off the list, or deletes one that Pagekeep fetched."""
        if path.is_relative_to(self._models):
            path.unlink(missing_ok=True)

        def changed(settings: Settings) -> Settings:
            known = tuple(p for p in settings.known_models if p != path)
            return replace(settings, model=None if settings.model == path else settings.model, known_models=known)

        self._change(changed)

    def info(self, path: Path) -> ModelInfo:
        """Reads and checks the header. Raises EngineError for what is no GGUF, truncated or unknown."""
        from engine.gguf import GgufFile
        from engine.models.families import spec_from_gguf
        from engine.models.tensors import check_tensors

        gguf = GgufFile.open(path)
        try:
            spec = spec_from_gguf(gguf)
            check_tensors(gguf, spec)
            tensors = tuple(gguf.tensors.values())
            return ModelInfo(
                path=path,
                name=spec.name,
                architecture=spec.architecture,
                context=spec.context,
                layers=len(spec.layers),
                channels=spec.channels,
                vocabulary=spec.vocabulary,
                parameters=sum(_elements(t.shape) for t in tensors),
                weights_bytes=sum(t.nbytes for t in tensors),
                tensor_types=_count_types([t.type_name for t in tensors]),
                warnings=tuple(spec.warnings),
            )
        finally:
            gguf.close()

    def fetch(self, what: str, on_bytes: OnBytes = silent, cancelled: IsCancelled = never) -> Path:
        """ "starter" or owner/repo/file.gguf; remembered as the choice. Raises UserError, Cancelled."""
        if what == "starter":
            path = fetch_starter(self._models, on_bytes, cancelled)
        else:
            path = fetch_from_hub(HubFile.parse(what), self._models, on_bytes, cancelled)
        self.remember(path)
        return path

    def resolve(self, text: str) -> Path:
        """A path, or the name of a known model. Raises UserError when it is neither."""
        path = Path(text).expanduser()
        if path.is_file():
            return path.absolute()
        for entry in self.models():
            if text in (entry.name, entry.path.name, entry.path.stem) and entry.present:
                return entry.path
        if text == "starter":
            return fetch_starter(self._models)
        raise UserError(
            f"There is no model “{text}”.",
            "It is neither a file nor a model that Pagekeep knows.",
            "'pagekeep model ls' lists the models; 'pagekeep model fetch' gets one.",
        )

    def _entry(self, path: Path, chosen: Path | None) -> ModelEntry:
        own = path.is_relative_to(self._models)
        origin: Origin = "starter" if own and path.name == STARTER_FILE else "hub" if own else "file"
        present = path.is_file()
        size = path.stat().st_size if present else 0
        return ModelEntry(path, readable_name(path), size, origin, path == chosen, present)


def _elements(shape: Sequence[int]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


def _count_types(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple((name, names.count(name)) for name in sorted(set(names)))
