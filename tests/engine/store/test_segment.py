"""A segment stays under its writer's lock, whoever comes between its making and its locking."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from engine.store import segment
from engine.store.locks import is_locked, private_file
from engine.store.recovery import forget_record
from engine.store.segment import SegmentWriter, scan


def test_a_look_at_it_does_not_keep_the_writer_from_locking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks whether it is locked holds it for a moment."""

    def looked_at(path: Path, flags: int) -> int:
        made, other = private_file(path, flags), os.open(path, os.O_RDONLY)
        fcntl.flock(other, fcntl.LOCK_SH)
        threading.Timer(0.1, os.close, [other]).start()
        return made

    monkeypatch.setattr(segment, "private_file", looked_at)
    writer = SegmentWriter(tmp_path)
    assert is_locked(writer.path)
    writer.close()


def test_what_is_written_out_is_found_without_a_sync(tmp_path: Path) -> None:
    """By another process, should this one be killed; until then the beginning of a stretch is held back."""
    writer, header = SegmentWriter(tmp_path), forget_record("c", bytes(32))
    writer.append(header, [])
    assert not list(scan(writer.path, 0))
    writer.write_out()
    assert [found.header.conversation for found in scan(writer.path, 0)] == ["c"]
    writer.append(header, [])
    writer.sync()
    assert len(list(scan(writer.path, 0))) == 2
    writer.close()


def test_one_that_was_removed_before_it_was_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def removed_once(path: Path, flags: int) -> int:
        descriptor = private_file(path, flags)
        if not made:
            path.unlink()
        made.append(path)
        return descriptor

    monkeypatch.setattr(segment, "private_file", removed_once)
    writer = SegmentWriter(tmp_path)
    assert writer.path == made[1]
    assert is_locked(writer.path)
    writer.close()
