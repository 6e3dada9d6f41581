"""Saving that was refused is known: in the process that saves, and to others from the log."""

from __future__ import annotations

from pathlib import Path

from engine.kv.log import KvLog, last_refusal
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
    with Opened(tmp_path) as opened:
        opened.converse("c", TOKENS).release()
        assert opened.store.refused() == ""
