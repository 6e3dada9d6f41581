"""Pages straight from mapped segments, the choice between that and reading, and how segments are written for it."""

from __future__ import annotations

import itertools
import mmap
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.kv.sequence import Sequence
from engine.store import segment as segments
from engine.store.mapping import can_map, gather, populate
from engine.store.record import BLOCK, STRETCH, Kind, RecordHeader
from engine.store.segment import SegmentWriter, scan
from engine.store.tools import StoreTools
from engine.store.ways import Ways
from tests.engine.kv.small import append, check_rows
from tests.engine.store.opened import Opened, restore, tokens_of
from tests.engine.store.test_damage import flip, segment

TOKENS = tokens_of(range(3, 60))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with Opened(tmp_path) as opened:
        opened.converse("chat", TOKENS).release()
    return tmp_path


def prefer(folder: Path, mapped: float, read: float) -> None:
    ways = Ways(folder / "ways.json")
    ways.saw(True, 64 << 20, 1 / mapped)
    ways.saw(False, 64 << 20, 1 / read)
    ways.save()


def mapped_pages(sequence: Sequence) -> int:
    return sum(page.buffer.slab is None for page in sequence.pages)


@pytest.mark.parametrize("mapped", [True, False])
def test_both_ways_bring_back_the_same_rows(store: Path, mapped: bool) -> None:
    prefer(store, *((2.0, 1.0) if mapped else (1.0, 2.0)))
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(TOKENS))
        check_rows(sequence)
        assert sequence.num_tokens == len(TOKENS)
        assert mapped_pages(sequence) == (len(sequence.pages) if mapped and can_map() else 0)


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_mapped_pages_count_against_the_budget_and_are_let_go(store: Path) -> None:
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(TOKENS))
        pool, pages = opened.cache.pool, len(sequence.pages)
        assert pages
        assert pool.mapped_bytes == pages * pool.stride
        assert pool.used_bytes == pool.mapped_bytes + pool.stride, "the tail lies in memory"
        assert opened.cache.stat().mapped_bytes == pool.mapped_bytes
        sequence.release()
        opened.cache.evict(pool.used_bytes)
        assert pool.used_bytes == pool.mapped_bytes == 0


def resident(path: Path) -> int:
    """Bytes of the file that this process has mapped in."""
    found, total = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            found = line.endswith(str(path))
        elif found and line.startswith("Rss:"):
            total += int(line.split()[1]) << 10
    return total


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_an_evicted_page_is_not_resident_any_more(store: Path) -> None:
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(TOKENS))
        before = resident(segment(store))
        assert before >= opened.cache.pool.mapped_bytes > 0
        left = sequence.fork()
        left.keep_first(2 * left.page_tokens)
        gone = len(sequence.pages) - 2
        sequence.release()
        opened.cache.evict(1 << 30)
        assert opened.cache.pool.mapped_bytes == 2 * opened.cache.pool.stride
        assert resident(segment(store)) <= before - gone * opened.cache.pool.stride
        check_rows(left)


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_a_mapped_page_is_never_written_to(store: Path) -> None:
    path = segment(store)
    before = path.read_bytes()
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(TOKENS))
        sequence.keep_first(sequence.page_tokens + 1)  # cuts inside a mapped page
        append(sequence, tokens_of(range(200, 212)))
        check_rows(sequence)
        assert mapped_pages(sequence) == 1
    assert path.read_bytes() == before


def test_mapped_pages_outlive_their_file(store: Path) -> None:
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(TOKENS))
        segment(store).unlink()
        check_rows(sequence)


@pytest.mark.parametrize("mapped", [True, False])
def test_damage_ends_the_prefix_whichever_way(store: Path, mapped: bool) -> None:
    prefer(store, *((2.0, 1.0) if mapped else (1.0, 2.0)))
    record = [found for found in scan(segment(store), 0) if found.header.kind == 0][2]
    flip(segment(store), record.offset + record.header.payload_offset + 7)
    with Opened(store) as opened:
        sequence = restore(opened.cache, opened.cache.match(TOKENS))
        assert len(sequence.pages) == 2
        check_rows(sequence)
        assert opened.cache.notices()


def in_use(opened: Opened) -> Sequence:
    sequence = restore(opened.cache, opened.cache.match(TOKENS))
    assert mapped_pages(sequence) == len(sequence.pages)
    return sequence


def damaged(folder: Path, page: int) -> None:
    """Flips a byte of a page, and has another process find it."""
    record = [found for found in scan(segment(folder), 0) if found.header.kind == 0][page]
    flip(segment(folder), record.offset + record.header.payload_offset + 7)
    with StoreTools(folder) as tools:
        assert len(tools.verify(drop_damaged=True).damaged) == 1


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_damage_that_another_refresh_met_is_not_matched(store: Path) -> None:
    with Opened(store) as opened:
        sequence = in_use(opened)
        damaged(store, 2)
        opened.store.refresh()  # as whoever waits for another process does
        found = opened.cache.match(TOKENS + tokens_of(range(300, 300 + 2 * sequence.page_tokens)))
        assert found.memory_tokens == 2 * sequence.page_tokens
        assert not opened.cache.losses.look_again(), "nothing new"
        assert not opened.cache.losses.sound(sequence)
        assert sequence.num_tokens == 2 * sequence.page_tokens


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_what_is_evicted_under_a_sequence_is_not_read_for_that(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Opened(store) as opened:
        sequence = in_use(opened)
        read: list[int] = []
        intact = opened.store.intact
        monkeypatch.setattr(opened.store, "intact", lambda record: read.append(len(record)) or intact(record))
        with StoreTools(store) as tools:
            assert tools.gc(0).evicted
        assert opened.cache.losses.look_again()
        assert opened.store.find(sequence.pages[-1].key) is None
        assert not read
        assert opened.cache.losses.sound(sequence)
        check_rows(sequence)


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
@pytest.mark.parametrize("evicted", [False, True])
def test_damage_is_met_where_the_page_was_written_anew_since(store: Path, evicted: bool) -> None:
    with Opened(store) as opened:
        sequence = in_use(opened)
        damaged(store, 2)
        with Opened(store) as other:
            other.converse("chat", TOKENS).release()
        if evicted:
            with StoreTools(store) as tools:
                assert tools.gc(0).evicted
        assert not opened.cache.losses.sound(sequence, at_once=True)
        assert sequence.num_tokens == 2 * sequence.page_tokens


def test_a_segment_is_written_in_whole_stretches(tmp_path: Path) -> None:
    """What lies behind the last whole stretch waits for `sync`; nothing is lost or moved by that."""
    writer, chance = SegmentWriter(tmp_path), np.random.default_rng(4)
    header = next(found.header for found in scan(_written(tmp_path / "other"), 0) if found.header.kind == 0)
    placed = []
    for size in (700_001, 2_500_000, 64, 5_000_003):
        body = chance.integers(0, 256, size, np.uint8)
        placed.append((writer.append(replace(header, payload_bytes=size), [body]), body))
        assert os.stat(writer.path).st_size in (4096, writer.end - writer.end % STRETCH)
    writer.sync()
    data = np.fromfile(writer.path, np.uint8)
    writer.close()
    assert len(data) == writer.end
    for offset, body in placed:
        start = offset + replace(header, payload_bytes=len(body)).payload_offset
        assert (data[start : start + len(body)] == body).all()


def _written(folder: Path) -> Path:
    with Opened(folder) as opened:
        opened.converse("chat", TOKENS).release()
    return segment(folder)


def test_the_faster_way_is_chosen_and_the_other_tried_at_times(tmp_path: Path) -> None:
    ways, size, large = Ways(tmp_path / "ways.json"), 20 << 20, 100 << 20
    assert ways.choose_map(size), "nothing is known"
    ways.saw(True, size, 0.02)
    assert ways.choose_map(large), "a trial nobody should wait for"
    assert not ways.choose_map(size), "reading was never measured"
    ways.saw(False, size, 0.04)
    chosen = [ways.choose_map(size) for _ in range(32)]
    assert chosen.count(False) == 2
    assert all(ways.choose_map(large) for _ in range(32))
    ways.saw(True, size, 10.0)  # from a slow disk: says nothing about the way
    assert ways.choose_map(size)
    ways.save()
    assert Ways.load(tmp_path / "ways.json").mapped == size / 0.02
    (tmp_path / "ways.json").write_text("{")
    assert Ways.load(tmp_path / "ways.json").mapped == 0.0


def _huge(path: Path) -> int:
    """Bytes of the file's first stretch that one entry maps once it is populated."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), STRETCH, prot=mmap.PROT_READ) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        view = np.frombuffer(memory, np.uint8)
        populate(view)
        del view
        maps = Path("/proc/self/smaps").read_text()
    own = maps[maps.index(str(path)) :]
    return int(own.split("FilePmdMapped:")[1].split()[0]) << 10


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_a_stretch_written_in_parts_becomes_one_piece(tmp_path: Path) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    data = np.random.default_rng(5).integers(0, 256, STRETCH, np.uint8).tobytes()
    for path, sizes in ((whole, [STRETCH]), (parted, [BLOCK, 700 << 10, 300 << 10, STRETCH])):
        with path.open("wb", buffering=0) as file:
            done = 0
            for size in sizes:
                done += file.write(data[done : done + size])
                os.fsync(file.fileno())
    if _huge(whole) < STRETCH:
        pytest.skip("this file system keeps no pieces of 2 MB")
    assert _huge(parted) < STRETCH
    gather(parted, [0])
    assert _huge(parted) == STRETCH
    assert parted.read_bytes() == data


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_stretches_are_gathered_once_they_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[list[int]] = []
    monkeypatch.setattr("engine.store.segment.gather", lambda path, offsets: told.append(list(offsets)))
    writer = SegmentWriter(tmp_path)
    header, body = RecordHeader(Kind.PAGE, bytes(32), payload_bytes=700 << 10), np.zeros(700 << 10, np.uint8)
    for _ in range(6):
        writer.append(header, [body])
        writer.sync()
    for _ in range(4):
        writer.append(header, [body])
    writer.sync()
    writer.close()
    assert told == [[], [], [0], [], [], [STRETCH], [2 * STRETCH]]


@pytest.mark.parametrize("seconds", [0.001, 0.025])
def test_where_whole_stretches_hold_a_processor_for_long_they_are_written_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """And gathered then; `seconds`: that the write of one takes."""
    sizes, told, write, clock = list[int](), list[list[int]](), segments._write_all, itertools.count()
    monkeypatch.setattr(segments, "_write_all", lambda d, p, at: (sizes.append(sum(map(len, p))), write(d, p, at))[1])
    monkeypatch.setattr(segments, "gather", lambda path, offsets: told.append(list(offsets)))
    monkeypatch.setattr(segments.time, "thread_time", lambda: seconds * next(clock))
    writer = SegmentWriter(tmp_path)
    body = np.random.default_rng(3).integers(0, 256, 3 * STRETCH, np.uint8)
    header = RecordHeader(Kind.PAGE, bytes(32), payload_bytes=len(body))
    at = writer.append(header, [body])
    writer.sync()
    first, rest = STRETCH - BLOCK, header.record_bytes - 3 * STRETCH + BLOCK
    if seconds < 0.005:
        assert sizes == [BLOCK, first, STRETCH, STRETCH, rest]
        assert told == [[0]]
    else:
        assert sizes == [BLOCK, first, *[256 << 10] * 16, rest]
        assert told == [[0, STRETCH, 2 * STRETCH]]
    written = np.fromfile(writer.path, np.uint8, offset=at + header.payload_offset)
    assert np.array_equal(written[: len(body)], body)
    writer.close()


@pytest.mark.skipif(not can_map(), reason="this system cannot populate a mapping")
def test_a_file_cut_short_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(bytes(BLOCK))
    gather(path, [0, STRETCH])
    assert path.read_bytes() == bytes(BLOCK)
