"""The wheel carries everything: built (of the kernels what runs everywhere), installed elsewhere, run from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.timeout(1200)  # compiling takes a minute or two


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment of its own with the wheel; the dependencies are those of the running one."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip"]
    portable = "--config-settings=cmake.define.PAGEKEEP_PORTABLE=ON"  # all levels take up to nine minutes
    built = subprocess.run(
        [*pip, "wheel", "--quiet", "--no-deps", portable, "-w", str(folder), str(ROOT)], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    environment = folder / "venv"
    venv.create(environment, with_pip=False, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    # Of a folder that is only a path, the .pth files do not count: a development install stays out.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (wheel,) = folder.glob("pagekeep-*.whl")
    python = environment / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), "install", "--quiet", "--no-deps", str(wheel)], check=True)
    return site


def run(installed: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(installed.parents[2] / "bin" / "pagekeep"), *arguments]
    environment = _environment() | {"PAGEKEEP_HOME": str(home)}
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=300)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def test_all_packages_and_the_native_module_come_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import app, engine, kernels, rag, kernels._native as n; print(app.__file__, engine.__file__, n.__file__)"
    python = installed.parents[2] / "bin" / "python"
    shown = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=_environment(), capture_output=True, text=True, check=True
    )
    assert len(shown.stdout.split()) == 3
    assert all(place.startswith(str(installed)) for place in shown.stdout.split()), shown.stdout


def test_assets_are_package_data(installed: Path) -> None:
    assert list((installed / "assets" / "sample").glob("*.pdf"))
    assert list((installed / "assets" / "icons").glob("*.svg"))


def test_the_sample_document_is_read_and_searched_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    (sample,) = (installed / "assets" / "sample").glob("*.pdf")
    added = run(installed, tmp_path, "index", "add", str(sample), "--json")
    assert added.returncode == 0, added.stderr
    found = run(installed, tmp_path, "index", "search", "deleted conversation trash", "--json")
    assert found.returncode == 0, found.stderr
    hits = json.loads(found.stdout)["hits"]
    assert any("30 days" in hit["text"] for hit in hits)


@pytest.mark.model
def test_a_question_is_answered_outside_the_checkout(installed: Path, tmp_path: Path, starter_model: Path) -> None:
    (sample,) = (installed / "assets" / "sample").glob("*.pdf")
    question = "How long is a deleted conversation kept in the trash?"
    asked = run(installed, tmp_path, "ask", str(sample), "-q", question, "--model", str(starter_model), "--json")
    assert asked.returncode == 0, asked.stderr
    answer = json.loads(asked.stdout)
    assert answer["answer"].strip()
    assert answer["tokens"]["generated"] > 0
