import threading
import time
from pathlib import Path

import pytest

from rag import IntakeCancelled
from rag.index.locks import exclusive


def never() -> bool:
    return False


def test_one_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        with exclusive(tmp_path / "lock", never):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_waiting_can_be_cancelled(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock, never), pytest.raises(IntakeCancelled), exclusive(lock, lambda: True):
        pass


def test_a_removed_lock_file_does_not_let_two_in(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    entered: list[str] = []

    def work() -> None:
        with exclusive(lock, never):
            entered.append("thread")

    with exclusive(lock, never):
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.15)
        lock.unlink()
        with exclusive(lock, never):  # a new file: the old holder is about to leave
            time.sleep(0.25)
            assert entered == []
    thread.join()
    assert entered == ["thread"]
