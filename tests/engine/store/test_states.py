"""Snapshots of recurrent layers in the store: a new process goes on from them. With the layer of test_recurrent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.kv.keys import page_key, state_key
from engine.kv.recurrent import Snapshots
from engine.messages import Tokens
from engine.store.record import Kind
from engine.store.segment import SegmentWriter, scan
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
        assert opened.cache.flush(240)
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


def test_they_move_with_their_conversation(folder: Path, tmp_path: Path) -> None:
    """Also where another conversation goes another way from the same page on."""
    with Opened(folder) as opened:
        other = run_in(opened)
        other.compute(DOCUMENT + _text(20, 7), anchors=(52,))
        opened.cache.save("other", other.sequence)
        assert opened.cache.flush(240)
    file = tmp_path / "chat.state"
    with StoreTools(folder) as tools:
        sent = tools.export_state("chat", file)
    states = [found.header for found in scan(file, 0) if found.header.kind == Kind.STATE]
    assert sent.states == len(states) > 1
    assert {header.start + len(header.ids) for header in states} >= {len(DOCUMENT), len(WHOLE)}
    with StoreTools(tmp_path / "there") as tools:
        taken = tools.import_state(file)
        assert (taken.states, taken.new) == (sent.states, sent.records)
        assert tools.import_state(file).new == 0
        assert not tools.verify().damaged
    with Opened(tmp_path / "there") as opened:
        assert back(opened, WHOLE + _text(3, 9))[1] == len(WHOLE)


def test_a_snapshot_that_is_not_sound_is_not_taken_in(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.state"
    with StoreTools(folder) as tools:
        tools.export_state("chat", file)
    last = [found for found in scan(file, 0) if found.header.kind == Kind.STATE][-1]
    flip(file, last.offset + last.header.payload_offset + 600)
    with StoreTools(tmp_path / "there") as tools:
        with pytest.raises(StoreError, match="damaged"):
            tools.import_state(file)
        assert tools.stat().live_bytes == 0


def test_a_snapshot_of_another_way_is_not_taken_in(folder: Path, tmp_path: Path) -> None:
    """Sound by itself: the tokens that it names are not the conversation's."""
    file, forged = tmp_path / "chat.state", tmp_path / "forged"
    forged.mkdir()
    with StoreTools(folder) as tools:
        tools.export_state("chat", file)
    writer = SegmentWriter(forged)
    for found in scan(file, 0):
        at, header = found.offset + found.header.payload_offset, found.header
        body = file.read_bytes()[at : found.offset + header.record_bytes][: header.extra_offset - header.payload_offset]
        if header.kind == Kind.STATE:
            ids = header.ids + 1
            header = replace(header, ids=ids, key=state_key(page_key(header.parent, ids, header.roles)))
        writer.append(header, [body[: header.payload_bytes]])
    writer.sync()
    writer.close()
    with StoreTools(tmp_path / "there") as tools, pytest.raises(StoreError, match="another conversation"):
        tools.import_state(writer.path)
