"""The index as threads and processes use it at once: what one changes beside a look-up of another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from engine.kv.keys import Key
from engine.store.opening import INDEX_NAME
from engine.store.rows import move_record, transaction
from engine.store.schema import connect
from tests.engine.kv.small import PAGE
from tests.engine.store.opened import Opened, tokens_of

LONG = tokens_of(range(5 * PAGE + 3))


class Afterwards:
    """A lock; once it is let go the first time, `then` happens."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._lock = threading.Lock()
        self._then = [then]

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        if self._then:
            self._then.pop()()


def test_a_look_up_keeps_nothing_older_than_a_refresh_beside_it(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        page = opened.converse("c", LONG).pages[0]
        index = opened.store._index
        index.refresh()
        before = index.find(page.key)
        index._records.clear()

        def moved() -> None:
            with closing(connect(tmp_path / INDEX_NAME)) as other, transaction(other) as db:
                query = "SELECT seq, segment, offset FROM records WHERE key = ?"
                seq, segment, offset = db.execute(query, (page.key,)).fetchone()
                move_record(db, seq, segment, offset + 4096)
            index.refresh()

        index._lock = Afterwards(moved)
        index.find(page.key)
        assert index.find(page.key).place.offset == before.place.offset + 4096


def test_what_is_hidden_beside_a_look_up_does_not_come_back(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG).release()
    with Opened(tmp_path) as opened:
        index = opened.store._index
        key = next(Key(found) for found in index._parents)
        hiding = threading.Thread(target=index.hide, args=(key,))

        def beside(statement: str) -> None:
            if not hiding.ident:
                hiding.start()
                hiding.join(0.2)  # it may have to wait for the look-up

        index._reader.set_trace_callback(beside)
        index.find(key)
        hiding.join()
        assert index.find(key) is None
        assert index.parent(key) is None
