"""Saving that was refused is known: in the process that saves, and to others from the log."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.kv.disk import Head
from engine.kv.keys import Key
from engine.kv.log import KvLog, last_refusal
from engine.store.jobs import Job
from engine.store.tools import StoreTools
from tests.engine.kv.small import append
from tests.engine.store.opened import Opened, tokens_of

TOKENS = tokens_of(range(100))


def test_what_was_refused_says_why_until_something_is_saved(tmp_path: Path) -> None:
    assert last_refusal(tmp_path) is None
    with Opened(tmp_path, disk_budget=9000) as opened:
        assert opened.store.refused() == ""
        opened.cache.log = KvLog(tmp_path)
        opened.converse("c", TOKENS).release()
        assert "budget" in opened.store.refused()
        assert opened.cache.notices()
        opened.cache.log.flush()
    found = last_refusal(tmp_path, "c")
    assert found is not None
    assert "budget" in found["why"]
    assert "Free some space" in found["next"]
    assert last_refusal(tmp_path, "another") is None, "that one was never to be saved"
    with StoreTools(tmp_path) as tools:
        assert {name: gone.reason for name, gone in tools.refused().items()} == {"c": "refused by the budget"}
    with Opened(tmp_path) as opened:
        opened.converse("c", TOKENS).release()
        assert opened.store.refused() == ""
    with StoreTools(tmp_path) as tools:
        assert tools.refused() == {}


@pytest.mark.parametrize("saved_then", [False, True])
def test_on_a_full_disk_the_reason_is_noted_once_there_is_room_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved_then: bool
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def no_room(*given: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with Opened(tmp_path) as opened:
        with monkeypatch.context() as broken:
            broken.setattr("engine.store.segment._write_all", full)
            broken.setattr("engine.store.refusals._note", no_room)
            sequence = opened.converse("c", TOKENS)
        if saved_then:
            opened.store.retry()
            opened.cache.save("c", sequence)
        sequence.release()
    with StoreTools(tmp_path) as tools:
        found = {name: gone.reason for name, gone in tools.refused().items()}
    assert found == ({} if saved_then else {"c": "refused by a full disk"})


def refused_then_killed(folder: Path) -> None:
    """A process whose disk, index included, has no room for `c`, but for `d` later; it ends with nothing closed."""

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def no_room(*given: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    opened = Opened(folder)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("engine.store.segment._write_all", full)
        broken.setattr("engine.store.refusals._note", no_room)
        opened.converse("c", TOKENS)
    opened.store.retry()
    opened.converse("d", tokens_of(range(200, 300)))
    os._exit(9)


def test_the_reason_is_noted_with_what_is_saved_next_and_outlasts_a_kill(tmp_path: Path) -> None:
    run = f"from {__name__} import *; refused_then_killed(Path({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-c", run], cwd=Path(__file__).parents[3], timeout=500)
    assert done.returncode == 9
    with StoreTools(tmp_path) as tools:
        assert {name: gone.reason for name, gone in tools.refused().items()} == {"c": "refused by a full disk"}


def test_what_is_handed_over_says_whether_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def written(opened: Opened) -> bool:
        handed = opened.store.hand_over()
        assert handed.wait(240)
        return handed.written

    with Opened(tmp_path / "kv") as opened, monkeypatch.context() as broken:
        sequence = opened.converse("c", TOKENS)
        assert written(opened)
        broken.setattr("engine.store.segment._write_all", full)
        append(sequence, tokens_of(range(100, 600)))
        assert not written(opened)
        append(sequence, tokens_of(range(600, 900)))
        assert not written(opened), "it is refused for a while"
        sequence.release()
    with Opened(tmp_path / "small", disk_budget=9000) as opened:
        opened.converse("c", TOKENS).release()
        assert not written(opened)


def test_no_failure_ends_the_writing_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails: who waits is told, and what comes later is written."""
    settled: list[bool] = []

    def fails(*given: object) -> None:
        raise ValueError("mmap length is greater than file size")

    with Opened(tmp_path) as opened, monkeypatch.context() as broken:
        broken.setattr("engine.store.segment.gather", fails)
        sequence = opened.converse("c", TOKENS)
        assert opened.store.pending_bytes() == 0
        assert "greater than file size" in opened.store.refused()
        broken.undo()
        opened.store.retry()
        opened.store._writer.submit(Job(head=Head("d", Key(bytes(16)), None, 0, 0.0), done=fails))
        opened.store._writer.submit(Job(task=lambda: None, done=settled.append))
        assert opened.store.flush(240)
        assert settled == [True]
        opened.cache.save("c", sequence)
        sequence.release()
        assert opened.cache.flush(240)
        assert opened.store.refused() == ""
    with Opened(tmp_path) as opened:
        assert opened.cache.match(TOKENS).disk_tokens == len(TOKENS)


def test_the_last_of_the_disk_is_left_to_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = [64_000_000]
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=10**12, free=free[0]))
    with Opened(tmp_path) as opened:
        sequence = opened.converse("c", TOKENS)
        assert sum(path.stat().st_size for path in (tmp_path / "segments").iterdir()) == 0
        assert opened.store.refused() == "The disk is full; its last 64.0 MB are left to texts and other programs."
        free[0] *= 2
        opened.store.retry()
        opened.cache.save("c", sequence)
        opened.cache.flush()
        assert opened.store.refused() == ""
        sequence.release()
    with StoreTools(tmp_path) as tools:
        assert [(entry.conversation, entry.tokens_saved) for entry in tools.ls()] == [("c", len(TOKENS))]
