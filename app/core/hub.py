"""GGUF files from the Hugging Face hub by `owner/repo/file`: resumable over restarts, with progress.

huggingface_hub resolves the address, signs the request and knows proxies; its own download throws a partial
file away and reports every 10 MB, so the stream is read here, into a partial file named by the etag.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.core.downloads import BLOCK, IsCancelled, OnBytes, never, place_file, require_sha256, require_space, silent
from app.core.errors import Cancelled, UserError
from app.core.paths import PRIVATE_FILE, make_private_folder

RETRIES = 5
RETRY_PAUSE_S = 1.0
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
    """Appends to the partial file; a connection that is cut is taken up again where it was."""
    make_private_folder(part.parent)
    on_bytes(done, size)
    tries = RETRIES
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | (0 if done else os.O_TRUNC), PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.seek(done)
        while True:
            before = file.tell()
            try:
                _receive(url, file, size, on_bytes, cancelled)
                return
            except Exception as error:
                tries = RETRIES if file.tell() > before else tries - 1
                if not _is_transport_fault(error) or tries <= 0:
                    raise
                time.sleep(RETRY_PAUSE_S)


def _receive(url: str, file: BinaryIO, size: int, on_bytes: OnBytes, cancelled: IsCancelled) -> None:
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    start = file.tell()
    if cancelled():
        raise Cancelled
    if size and start == size:
        return
    headers = build_hf_headers() | ({"Range": f"bytes={start}-"} if start else {})
    with get_session().stream("GET", url, headers=headers, follow_redirects=True) as response:
        hf_raise_for_status(response)
        if start and response.status_code != 206:  # the server knows no ranges: from the beginning
            file.seek(0)
            file.truncate()
        for block in response.iter_bytes(BLOCK):
            file.write(block)
            on_bytes(file.tell(), size)
            if cancelled():
                raise Cancelled


def _is_transport_fault(error: Exception) -> bool:
    """Faults of the connection, whichever version of its HTTP library the hub's client uses."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, ConnectionError) or "TransportError" in names


def _without_connection(error: Exception) -> str:
    """Why the hub was not reached, in words; what the library says of it comes behind."""
    from urllib.parse import urlsplit

    from huggingface_hub import constants

    host = urlsplit(os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).netloc
    names = {kind.__name__ for kind in type(error).__mro__}
    if "TimeoutException" in names or isinstance(error, TimeoutError):
        return f"{host} does not answer."
    if "ProxyError" in names:
        return f"The proxy lets nothing through to {host}: {error}"
    return f"There is no connection to {host}: {error}"


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
        _without_connection(error) if _is_transport_fault(error) else f"{type(error).__name__}: {error}",
        "Check the network and try again; what was downloaded so far is kept.",
    )
