"""What downloads share: progress, stopping, room on the disk, hashes, placing the result in one go."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from app.core.errors import Cancelled, UserError
from app.core.paths import PRIVATE_FILE, make_private_folder
from rag.sizes import size_text

OnBytes = Callable[[int, int], None]  # bytes done, bytes in all (0 while unknown)
IsCancelled = Callable[[], bool]
BLOCK = 1 << 20


def never() -> bool:
    return False


def silent(done: int, total: int) -> None:
    """Progress that nobody looks at."""


def require_space(folder: Path, needed: int, what: str) -> None:
    """Raises UserError when `needed` bytes do not fit the disk that holds `folder`."""
    make_private_folder(folder)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(
            f"There is no room for {what}.",
            f"It needs {size_text(needed)}, {folder} has {size_text(free)} free.",
            "Free some space, or set PAGEKEEP_HOME to a folder on another disk.",
        )


def sha256_of(path: Path, cancelled: IsCancelled = never) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            if cancelled():
                raise Cancelled
            digest.update(block)
    return digest.hexdigest()


def require_sha256(path: Path, expected: str, what: str, cancelled: IsCancelled = never) -> None:
    """Raises UserError when the file is not the one that was pinned."""
    found = sha256_of(path, cancelled)
    if found != expected:
        raise UserError(
            f"The download of {what} is not the expected file.",
            f"SHA-256 is {found[:16]}…, expected {expected[:16]}…; it was damaged or replaced on the way.",
            "Try again; if it happens again, check the package index or proxy in use.",
        )


def place_file(source: Path, target: Path) -> None:
    """Moves a finished file to its place; nobody ever sees a part of it under that name."""
    make_private_folder(target.parent)
    source.chmod(PRIVATE_FILE)
    os.replace(source, target)


def place_folder(source: Path, target: Path) -> None:
    """As place_file; a folder that is there already (another process was quicker) stays."""
    make_private_folder(target.parent)
    try:
        os.replace(source, target)
    except OSError:
        if not target.is_dir():
            raise
