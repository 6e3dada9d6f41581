"""Snapshots of recurrent layers in the store: a new process goes on from them. With the layer of test_recurrent."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.kv.recurrent import Snapshots
from engine.messages import Tokens
from engine.store.record import Kind
from engine.store.segment import scan
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE
from tests.engine.kv.test_recurrent import LAYOUT, Run, _straight, _text
from tests.engine.store.opened import Opened, restore
from tests.engine.store.test_damage import flip, segment

DOCUMENT, TURN = _text(45, 1), _text(30, 2)
WHOLE = DOCUMENT + TURN


def run_in(opened: Opened) -> Run:
    return Run(opened.cache, Snapshots(1 << 20, LAYOUT, opened.store, "test"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Opened(tmp_path) as opened:
        run = run_in(opened)
        run.compute(WHOLE, anchors=(11, 3 * PAGE, 45))
        opened.cache.save("chat", run.sequence)
        assert opened.cache.flush(30)
    return tmp_path


def back(opened: Opened, tokens: Tokens) -> tuple[Run, int]:
    """As a new process returns: pages from disk, the nearest snapshot, the rest computed again."""
    run = run_in(opened)
    run.sequence = restore(opened.cache, opened.cache.match(tokens))
    position = run.rewind(run.sequence.num_tokens)
    assert (run.compute(tokens) == _straight(tokens)).all()
    return run, position


@pytest.mark.parametrize(("kept", "position"), [(75, 75), (60, 45), (45, 45), (44, 24), (20, 11), (9, 0)])
def test_a_new_process_goes_on_from_the_nearest_snapshot(folder: Path, kept: int, position: int) -> None:
    tokens = Tokens(WHOLE.ids[:kept], WHOLE.roles[:kept]) + _text(9, 3)
    with Opened(folder) as opened:
        assert back(opened, tokens)[1] == position


def test_snapshots_do_not_stand_in_the_way_of_pages(folder: Path) -> None:
    with Opened(folder) as opened:
        found = opened.cache.match(WHOLE)
        assert (found.tokens, found.disk_tokens) == (len(WHOLE), len(WHOLE))
        opened.converse("chat", WHOLE + _text(20, 4)).release()
    with StoreTools(folder) as tools:
        assert tools.ls()[0].tokens_saved == len(WHOLE) + 20
        assert not tools.verify().damaged


def test_a_damaged_snapshot_is_left_out(folder: Path) -> None:
    records = [found for found in scan(segment(folder), 0) if found.header.kind == Kind.STATE]
    (last,) = (found for found in records if found.header.start + len(found.header.ids) == len(WHOLE))
    flip(segment(folder), last.offset + last.header.payload_offset + 600)
    with Opened(folder) as opened:
        assert back(opened, WHOLE + _text(3, 9))[1] == 45
        opened.cache.flush()
    with StoreTools(folder) as tools:
        assert not tools.verify().damaged, "nobody will find it again"


def test_other_arithmetic_is_not_gone_on_from(folder: Path) -> None:
    with Opened(folder) as opened:
        run = Run(opened.cache, Snapshots(1 << 20, LAYOUT, opened.store, "another machine"))
        run.sequence = restore(opened.cache, opened.cache.match(WHOLE))
        assert run.rewind(len(WHOLE)) == 0


def test_they_outlive_the_index_and_compaction(folder: Path) -> None:
    for path in folder.glob("index.sqlite*"):
        path.unlink()
    with StoreTools(folder) as tools:
        tools.gc(1 << 30)
    with Opened(folder) as opened:
        assert back(opened, WHOLE + _text(3, 9))[1] == len(WHOLE)


@pytest.mark.parametrize("forget", [True, False])
def test_they_go_with_their_conversation(folder: Path, forget: bool) -> None:
    with StoreTools(folder) as tools:
        tools.forget("chat") if forget else tools.gc(0)
        stat = tools.stat()
        assert (stat.pages, stat.tails, stat.live_bytes) == (0, 0, 0)
