"""Where Pagekeep keeps its files (XDG and its counterparts by platformdirs), private to the user.

Conversations, library and models are data; KV state is cache and may vanish at any time; logs and window
state are state. PAGEKEEP_HOME puts all four below one folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.core.errors import UserError

APP_NAME = "pagekeep"
PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


@dataclass(frozen=True)
class Paths:
    """The four roots; everything else is below them. `create` makes what is missing."""

    data: Path
    cache: Path
    state: Path
    config: Path

    @staticmethod
    def default(environ: Mapping[str, str] | None = None) -> Paths:
        """The platform's folders, or those below PAGEKEEP_HOME."""
        home = (os.environ if environ is None else environ).get("PAGEKEEP_HOME", "").strip()
        if home:
            return Paths.below(Path(home).expanduser().absolute())
        dirs = platformdirs.PlatformDirs(APP_NAME, appauthor=False, roaming=False)
        return Paths(dirs.user_data_path, dirs.user_cache_path, dirs.user_state_path, dirs.user_config_path).separated()

    @staticmethod
    def below(home: Path) -> Paths:
        return Paths(home / "data", home / "cache", home / "state", home / "config")

    def separated(self) -> Paths:
        """Some platforms use one folder for several kinds; keep the kinds apart all the same."""
        roots = (self.data, self.cache, self.state, self.config)
        if len(set(roots)) == len(roots):
            return self
        return Paths(self.data / "data", self.cache / "cache", self.state / "state", self.config / "config")

    @property
    def conversations(self) -> Path:
        return self.data / "conversations.db"

    @property
    def library(self) -> Path:
        return self.data / "library"

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def embedder(self) -> Path:
        return self.data / "embedder"

    @property
    def kv(self) -> Path:
        return self.cache / "kv"

    @property
    def downloads(self) -> Path:
        return self.cache / "downloads"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def settings(self) -> Path:
        return self.config / "settings.json"

    def create(self) -> Paths:
        """Makes the folders, 0700. Returns itself. Raises UserError where the disk says no."""
        for folder in (self.data, self.cache, self.state, self.config, self.library, self.models):
            try:
                make_private_folder(folder)
            except OSError as error:
                raise UserError(
                    "The folder for Pagekeep's data cannot be used.",
                    f"{folder}: {error.strerror or error}.",
                    "Check the folder and its rights, or set PAGEKEEP_HOME to a folder that can be written.",
                ) from error
        return self


def make_private_folder(folder: Path) -> Path:
    """The folder with its missing parents; what Pagekeep made or owns is closed to other users."""
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        folder.chmod(PRIVATE_FOLDER)
    return folder


def close_to_others(path: Path) -> None:
    """Files 0600, folders 0700, for everything below `path`."""
    for root, _, files in os.walk(path):
        os.chmod(root, PRIVATE_FOLDER)
        for name in files:
            os.chmod(os.path.join(root, name), PRIVATE_FILE)


def write_atomically(path: Path, data: bytes) -> None:
    """Readers see the old file or the new one, never a part. The new one is on the disk before the swap."""
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
