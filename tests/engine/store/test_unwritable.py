"""A store that cannot be written, for its rights, its disk, or because it never was: it is read, and says why."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.store.tools import StoreTools
from tests.engine.store.opened import Opened, tokens_of

TOKENS = tokens_of(range(100))
CHANGES: list[Callable[[StoreTools], object]] = [
    lambda tools: tools.gc(0),
    lambda tools: tools.forget("c"),
    lambda tools: tools.pin("c", True),
    lambda tools: tools.import_state(tools.folder.parent / "there.seg"),
]


def full(*given: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Opened(tmp_path / "kv") as opened:
        opened.converse("c", TOKENS).release()
    with StoreTools(tmp_path / "kv") as tools:
        tools.export_state("c", tmp_path / "there.seg")
    return tmp_path / "kv"


def test_on_a_disk_without_room_for_a_lock_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.store.tools.prepare", full)
    with StoreTools(folder) as tools:
        assert [(entry.conversation, entry.tokens_saved) for entry in tools.ls()] == [("c", len(TOKENS))]
        assert tools.verify(drop_damaged=True).damaged == ()
        assert tools.stat().conversations == 1
        for change in CHANGES:
            with pytest.raises(StoreError, match=r"Nothing was changed.*No space left"):
                change(tools)


def test_rights_are_named_where_something_is_to_change(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage is told, and stays where it cannot be taken out."""
    (segment,) = (path for path in (folder / "segments").iterdir() if path.stat().st_size > 4096)
    data = bytearray(segment.read_bytes())
    data[9000] ^= 1
    segment.write_bytes(data)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with StoreTools(folder) as tools:
        assert len(tools.verify(drop_damaged=True).damaged) == len(tools.verify(drop_damaged=True).damaged) == 1
        for change in CHANGES:
            with pytest.raises(StoreError, match=r"Nothing was changed.*cannot be written"):
                change(tools)


def test_a_folder_that_never_was_and_cannot_be_made_is_an_empty_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.store.tools.prepare", full)
    with StoreTools(tmp_path / "kv") as tools:
        assert (tools.ls(), tools.unclaimed(), tools.names(), tools.stat().segments) == ([], [], [], 0)
        assert tools.verify().records == 0


def test_a_file_in_the_folders_place_is_told_without_numbers_of_errors(tmp_path: Path) -> None:
    (tmp_path / "kv").touch()
    with pytest.raises(StoreError, match=r"cannot be read\. .*kv: File exists\.$"):
        StoreTools(tmp_path / "kv")
