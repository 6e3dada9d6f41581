"""What is on disk of no conversation's state is told: prompts that were cut off, and what was edited since."""

from __future__ import annotations

from pathlib import Path

from engine.messages import Tokens
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, append
from tests.engine.store.opened import Opened, tokens_of

LONG = tokens_of(range(5 * PAGE + 3))


def found(folder: Path) -> list[tuple[int, int]]:
    with StoreTools(folder) as tools:
        entries = tools.unclaimed()
        assert sum(e.bytes for e in entries) <= tools.stat().live_bytes
        assert all(e.bytes > 0 and e.used > 0 and e.model == "small" and e.kv_type for e in entries)
        return [(entry.pages, entry.tokens) for entry in entries]


def test_pages_of_a_prompt_that_was_cut_off_are_told_until_its_end_is_saved(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        sequence = opened.cache.sequence(opened.cache.match(LONG))
        append(sequence, LONG)
    assert found(tmp_path) == [(5, 5 * PAGE)]
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG)
    assert found(tmp_path) == []


def test_what_was_edited_since_is_told(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG)
        opened.converse("d", LONG)
        other = Tokens(LONG.ids[: 2 * PAGE], LONG.roles[: 2 * PAGE]) + tokens_of(range(1000, 1000 + PAGE))
        opened.converse("c", other)
    assert found(tmp_path) == [], "another conversation ends there"
    with StoreTools(tmp_path) as tools:
        tools.forget("d")
    assert found(tmp_path) == [], "what nobody uses went with it"
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG)
    assert found(tmp_path) == [(1, PAGE)]


def test_what_was_edited_goes_with_its_conversation(tmp_path: Path) -> None:
    """It stands on pages that would stay for it, though nobody goes through them any more."""
    ends = [Tokens(LONG.ids[: n * PAGE], LONG.roles[: n * PAGE]) + tokens_of(range(1000, 1000 + PAGE)) for n in (2, 4)]
    with Opened(tmp_path) as opened:
        for tokens in (LONG, *ends):
            opened.converse("c", tokens)
        opened.converse("d", Tokens(LONG.ids[:PAGE], LONG.roles[:PAGE]))
    assert found(tmp_path) == [(2, 2 * PAGE)]
    with StoreTools(tmp_path) as tools:
        tools.forget("c")
        assert (tools.stat().pages, [entry.conversation for entry in tools.ls()]) == (1, ["d"])
    assert found(tmp_path) == []
    with Opened(tmp_path) as opened:
        assert opened.cache.match(LONG).tokens == PAGE
