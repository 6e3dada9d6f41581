"""GGUF files from the Hugging Face hub by `owner/repo/file`: resumable over restarts, with progress.

huggingface_hub's own cache throws a partial file away, so its parts are used directly: it resolves the
address, signs the request and streams with retries; the partial file, named by the etag, is ours.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.downloads import IsCancelled, OnBytes, never, place_file, require_sha256, require_space, silent
from app.core.errors import Cancelled, UserError
from app.core.paths import PRIVATE_FILE, make_private_folder

NAME = re.compile(r"^[\w.-]+$")


@dataclass(frozen=True)
class HubFile:
    """`file` may have folders of its own inside the repository."""

    owner: str
    repo: str
    file: str

    @staticmethod
    def parse(text: str) -> HubFile:
        """From owner/repo/file.gguf, or the address of the file's page. Raises UserError."""
        address = re.sub(r"^https?://[^/]+/", "", text.strip()).split("?")[0]
        address = re.sub(r"^([^/]+/[^/]+)/(?:resolve|blob)/[^/]+/", r"\1/", address)
        parts = address.split("/")
        plain = all(NAME.match(part) and part not in (".", "..") for part in parts)
        if len(parts) < 3 or not plain or not parts[-1].lower().endswith(".gguf"):
            raise UserError(
                f"“{text}” names no model file.",
                "A file on the Hugging Face hub is named owner/repo/file.gguf.",
                "Copy the three parts from the model's page; 'starter' fetches the starter model.",
            )
        return HubFile(parts[0], parts[1], "/".join(parts[2:]))

    @property
    def repository(self) -> str:
        return f"{self.owner}/{self.repo}"

    def path(self, models: Path) -> Path:
        return models / f"{self.owner}--{self.repo}" / self.file.replace("/", "--")


def fetch_from_hub(what: HubFile, models: Path, on_bytes: OnBytes = silent, cancelled: IsCancelled = never) -> Path:
    """The file below `models`; goes on where an earlier download stopped. Raises UserError, Cancelled."""
    target = what.path(models)
    if target.is_file():
        return target
    try:
        return _fetch(what, target, models / ".fetch", on_bytes, cancelled)
    except (UserError, Cancelled):
        raise
    except Exception as error:
        raise _explain(what, error) from error


def _fetch(what: HubFile, target: Path, work: Path, on_bytes: OnBytes, cancelled: IsCancelled) -> Path:
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT") or None
    url = hf_hub_url(what.repository, what.file, endpoint=endpoint)
    metadata = get_hf_file_metadata(url, endpoint=endpoint)
    etag, size = metadata.etag or "unknown", metadata.size or 0
    part = work / f"{what.owner}--{what.repo}--{target.name}.{etag[:16]}.part"
    done = part.stat().st_size if part.is_file() and etag != "unknown" else 0
    require_space(work, max(0, size - done), target.name)
    _stream(url, part, done, size, on_bytes, cancelled)
    if len(etag) == 64:  # the etag of a large file is its SHA-256
        _check(part, etag, target.name, cancelled)
    place_file(part, target)
    return target


def _check(part: Path, expected: str, what: str, cancelled: IsCancelled) -> None:
    try:
        require_sha256(part, expected, what, cancelled)
    except UserError:
        part.unlink(missing_ok=True)
        raise


def _stream(url: str, part: Path, done: int, size: int, on_bytes: OnBytes, cancelled: IsCancelled) -> None:
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    make_private_folder(part.parent)
    if cancelled():
        raise Cancelled
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | (0 if done else os.O_TRUNC), PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.seek(done)
        http_get(
            url,
            file,
            resume_size=done,
            headers=build_hf_headers(),
            expected_size=size or None,
            tqdm_class=_progress_bar(done, size, on_bytes, cancelled),
        )


def _progress_bar(start: int, size: int, on_bytes: OnBytes, cancelled: IsCancelled) -> Any:
    """A progress bar that reports instead of drawing, and stops the download when asked to."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Reporting(tqdm):  # type: ignore[misc, type-arg]
        done = start

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "disable": True})
            on_bytes(start, size)

        def update(self, n: float | None = 1) -> None:
            self.done += int(n or 0)
            on_bytes(self.done, size)
            if cancelled():
                raise Cancelled

    return Reporting


def _explain(what: HubFile, error: Exception) -> UserError:
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, RepositoryNotFoundError

    name = f"{what.repository}/{what.file}"
    if isinstance(error, GatedRepoError):
        return UserError(
            f"{name} is closed to the public.",
            "Its owner wants you to accept conditions first.",
            "Accept them on the model's page and log in with 'hf auth login'.",
        )
    if isinstance(error, (RepositoryNotFoundError, EntryNotFoundError)):
        return UserError(
            f"{name} is not on the hub.", "No such repository or file.", "Check the name on the model's page."
        )
    return UserError(
        f"{name} could not be downloaded.",
        f"{type(error).__name__}: {error}",
        "Check the network and try again; what was downloaded so far is kept.",
    )
