import stat
from pathlib import Path

import pytest

from app.core.errors import UserError
from app.core.paths import Paths, write_atomically


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_home_overrides_the_platform(tmp_path: Path) -> None:
    paths = Paths.default({"PAGEKEEP_HOME": str(tmp_path / "home")})
    assert {p.parent for p in (paths.data, paths.cache, paths.state, paths.config)} == {tmp_path / "home"}
    assert len({paths.data, paths.cache, paths.state, paths.config}) == 4


def test_without_home_the_kinds_are_kept_apart() -> None:
    paths = Paths.default({})
    assert len({paths.data, paths.cache, paths.state, paths.config}) == 4
    assert all(p.is_absolute() and "pagekeep" in str(p).lower() for p in (paths.data, paths.cache, paths.state))


def test_kv_state_is_cache_and_conversations_are_data(tmp_path: Path) -> None:
    paths = Paths.below(tmp_path)
    assert paths.kv.is_relative_to(paths.cache)
    assert paths.conversations.is_relative_to(paths.data)
    assert paths.logs.is_relative_to(paths.state)


def test_folders_are_private_even_if_they_were_open(tmp_path: Path) -> None:
    (tmp_path / "h" / "data").mkdir(parents=True, mode=0o755)
    paths = Paths.below(tmp_path / "h").create()
    assert {mode_of(p) for p in (paths.data, paths.cache, paths.state, paths.config, paths.models)} == {0o700}


def test_atomic_write_is_private_and_leaves_no_rest(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "file"
    write_atomically(target, b"one")
    write_atomically(target, b"two")
    assert target.read_bytes() == b"two"
    assert mode_of(target) == 0o600
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_atomically(target, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_home_that_is_a_file_is_told(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    with pytest.raises(UserError, match="cannot be used") as caught:
        Paths.below(home).create()
    assert str(home) in caught.value.why
    assert "PAGEKEEP_HOME" in caught.value.next
