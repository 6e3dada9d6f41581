"""A segment stays under its writer's lock, whoever looks meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

from engine.store.locks import is_locked
from engine.store.segment import SegmentWriter


def test_looking_whether_it_is_locked_does_not_keep_the_writer_from_locking(tmp_path: Path) -> None:
    """Who looks holds the lock for a moment, which may be the moment in which the writer wants it."""
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            for path in tmp_path.glob("*.seg"):
                is_locked(path)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(100):
            writer = SegmentWriter(tmp_path)
            assert is_locked(writer.path)
            writer.close()
            writer.path.unlink()
    finally:
        ended.set()
        for looker in lookers:
            looker.join()
