"""Whatever happens to the files: what is used is what was computed, the rest is absent, and the reader is told."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from engine.errors import StoreError
from engine.kv.log import read_log
from engine.messages import Tokens
from engine.store import KvStore
from engine.store.segment import scan
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, check_rows, small_layout
from tests.engine.store.opened import FINGERPRINT, Opened, restore, tokens_of

LONG = tokens_of(range(6 * PAGE + 5))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one conversation, to be copied and damaged."""
    folder = tmp_path_factory.mktemp("saved") / "store"
    with Opened(folder) as opened:
        opened.converse("c", LONG)
    return folder


@pytest.fixture
def store(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "store"))


def segment(folder: Path) -> Path:
    (path,) = (folder / "segments").iterdir()
    return path


def flip(path: Path, offset: int, bit: int = 0) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


def usable(folder: Path) -> int:
    """Restores what there is, checks every row, recomputes the rest, and checks that it then comes back whole."""
    with Opened(folder) as opened:
        found = opened.cache.match(LONG)
        sequence = restore(opened.cache, found)
        check_rows(sequence)
        tokens = sequence.num_tokens
        assert sequence.tokens.ids == LONG.ids[:tokens]
        if tokens < found.tokens:
            opened.cache.flush()
            assert opened.cache.notices(), "the reader is told"
        sequence.release()
        opened.converse("c", LONG).release()
    with Opened(folder) as opened:
        whole = restore(opened.cache, opened.cache.match(LONG))
        check_rows(whole)
        assert whole.num_tokens == len(LONG), "what was recomputed is saved again"
    return tokens


@pytest.mark.parametrize("page", [0, 3, 5])
@pytest.mark.parametrize("place", ["magic", "key", "ids", "sums", "payload start", "payload end"])
def test_a_flipped_bit_costs_the_page_and_what_follows(store: Path, page: int, place: str) -> None:
    record = [found for found in scan(segment(store), 0) if found.header.kind == 0][page]
    offset = {
        "magic": 0,
        "key": 20,
        "ids": record.header.header_bytes - 16 - 7 - 24 * 2 - 5 * PAGE,
        "sums": record.header.header_bytes - 60,
        "payload start": record.header.payload_offset,
        "payload end": record.header.payload_offset + record.header.payload_bytes - 1,
    }[place]
    flip(segment(store), record.offset + offset, 5)
    with StoreTools(store) as tools:
        assert len(tools.verify().damaged) == 1
    assert usable(store) == page * PAGE


def test_a_damaged_tail_costs_the_tail_only(store: Path) -> None:
    (record,) = (found for found in scan(segment(store), 0) if found.header.kind == 1)
    flip(segment(store), record.offset + record.header.payload_offset + 3)
    assert usable(store) == 6 * PAGE


def test_random_damage_never_gives_a_wrong_row(saved: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    size = segment(saved).stat().st_size
    for number in range(25):
        folder = Path(shutil.copytree(saved, tmp_path / str(number)))
        for _ in range(chance.randint(1, 3)):
            flip(segment(folder), chance.randrange(size), chance.randrange(8))
        usable(folder)


@pytest.mark.parametrize("blocks", [0, 1, 2, 7, 12])
def test_a_truncated_segment_keeps_what_is_before(store: Path, blocks: int) -> None:
    with segment(store).open("r+b") as file:
        file.truncate(blocks * 4096 + 100)
    tokens = usable(store)
    assert tokens <= max(0, blocks - 1) // 2 * PAGE


def test_a_lost_segment_is_a_clean_miss(store: Path) -> None:
    segment(store).unlink()
    with Opened(store) as opened:
        found = opened.cache.match(LONG)
        assert (found.tokens, found.missing_reason) == (0, "removed")
    assert usable(store) == 0


@pytest.mark.parametrize("opened_before", [False, True])
def test_a_segment_removed_while_in_use_is_no_failure(store: Path, opened_before: bool) -> None:
    with Opened(store) as opened:
        whole_pages = Tokens(LONG.ids[: 6 * PAGE], LONG.roles[: 6 * PAGE])
        found = opened.cache.match(LONG if opened_before else whole_pages)
        assert found.disk_tokens == len(LONG if opened_before else whole_pages)
        segment(store).unlink()
        pending = opened.cache.begin_restore(found)
        assert pending.wait(240)
        sequence = pending.take()
        check_rows(sequence)
        if opened_before:
            assert sequence.num_tokens == len(LONG), "an open file stays readable"
        else:
            assert (sequence.num_tokens, pending.failed) == (0, "removed")
            opened.cache.flush()
            assert opened.cache.notices()
            assert opened.cache.match(LONG).tokens == 0
    assert usable(store) == 0


def test_garbage_behind_the_last_record_is_ignored(store: Path) -> None:
    with segment(store).open("ab") as file:
        file.write(b"PKRECORD" + random.Random(1).randbytes(9000))
    assert usable(store) == len(LONG)


def test_the_index_is_made_anew_when_it_is_lost(store: Path) -> None:
    for path in store.glob("index.sqlite*"):
        path.unlink()
    with Opened(store) as opened:
        assert opened.store.recovered.records == 8
        assert set(opened.cache.conversations.heads()) == {"c"}
    assert usable(store) == len(LONG)


def test_pins_outlive_the_index(store: Path) -> None:
    def pinned_after_loss() -> bool:
        (store / "index.sqlite").write_bytes(b"\xff" * 9000)
        with Opened(store) as opened:
            return opened.cache.conversations.heads()["c"].pinned

    with StoreTools(store) as tools:
        tools.pin("c", True)
        tools.rebuild()
        assert [entry.pinned for entry in tools.ls()] == [True]
    assert pinned_after_loss()
    (store / "pins.json").unlink()  # of a store from before there was one
    with Opened(store) as opened:
        assert opened.cache.conversations.heads()["c"].pinned
    assert pinned_after_loss()
    with Opened(store) as opened:
        opened.cache.conversations.pin("c", False)
    assert not pinned_after_loss()


@pytest.mark.parametrize("damage", ["garbage", "truncated", "empty", "another database"])
def test_a_damaged_index_is_set_aside(store: Path, damage: str) -> None:
    index = store / "index.sqlite"
    for path in store.glob("index.sqlite-*"):
        path.unlink()
    data = index.read_bytes()
    index.unlink()
    if damage == "another database":
        other = sqlite3.connect(index)
        other.execute("CREATE TABLE segments (colour)")
        other.commit()
        other.close()
    else:
        index.write_bytes({"garbage": b"\xff" * 9000, "truncated": data[:5000], "empty": b""}[damage])
    assert usable(store) == len(LONG)


def test_an_index_that_points_elsewhere_is_found_out(store: Path) -> None:
    with sqlite3.connect(store / "index.sqlite") as index:
        rows = index.execute("SELECT seq, offset FROM records WHERE kind = 0 ORDER BY start").fetchall()
        for (seq, _), (_, offset) in zip(rows[2:4], [rows[3], rows[2]], strict=True):
            index.execute("UPDATE records SET offset = ? WHERE seq = ?", (offset, seq))
    index.close()
    assert usable(store) == 2 * PAGE


def test_an_index_damaged_while_in_use_is_survived(store: Path) -> None:
    with Opened(store) as opened:
        (store / "index.sqlite").write_bytes(b"\x00" * 100)
        (store / "index.sqlite-wal").write_bytes(b"")
        sequence = restore(opened.cache, opened.cache.match(LONG))
        check_rows(sequence)
        opened.converse("d", tokens_of(range(700, 720)))
        sequence.release()
    usable(store)


def test_damage_is_a_reason_and_a_notice(store: Path) -> None:
    record = [found for found in scan(segment(store), 0) if found.header.kind == 0][2]
    flip(segment(store), record.offset + record.header.payload_offset)
    with Opened(store) as opened:
        pending = opened.cache.begin_restore(opened.cache.match(LONG))
        pending.wait(240)
        assert pending.take().num_tokens == 2 * PAGE
        assert pending.failed == "damaged"
        opened.cache.flush()
        (notice,) = opened.cache.notices()
        assert f"{2 * PAGE:,} to {3 * PAGE - 1:,}" in notice.why
        assert opened.cache.match(LONG).missing_reason == "damaged"


def test_a_folder_that_cannot_be_used_is_an_error_for_the_reader(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError) as error:
        KvStore(tmp_path / "file" / "store", small_layout(), FINGERPRINT)
    assert error.value.next


def test_verify_can_drop_what_is_damaged(store: Path) -> None:
    record = [found for found in scan(segment(store), 0) if found.header.kind == 0][4]
    flip(segment(store), record.offset + record.header.payload_offset)
    with StoreTools(store) as tools:
        (damage,) = tools.verify(drop_damaged=True).damaged
        assert (damage.start, damage.tokens) == (4 * PAGE, PAGE)
        assert not tools.verify().damaged
        assert tools.ls()[0].tokens_saved == 4 * PAGE
    with Opened(store) as opened:
        found = opened.cache.match(LONG)
        assert (found.tokens, found.missing_reason) == (4 * PAGE, "damaged")


def test_a_damaged_first_block_of_a_segment_costs_nothing(store: Path) -> None:
    flip(segment(store), 3)
    for path in store.glob("index.sqlite*"):
        path.unlink()
    assert usable(store) == len(LONG)


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_an_index_made_anew_prefers_the_later_record_and_is_told(store: Path, how: str) -> None:
    record = [found for found in scan(segment(store), 0) if found.header.kind == 0][2]
    flip(segment(store), record.offset + record.header.payload_offset)
    with StoreTools(store) as tools:
        assert tools.verify(drop_damaged=True).damaged
        assert not tools.notices
    with Opened(store) as opened:
        opened.converse("c", LONG).release()
    (store / "index.sqlite").unlink()
    if how == "damaged":
        (store / "index.sqlite").write_bytes(b"\xff" * 9000)
    with StoreTools(store, "info") as tools:
        (entry,) = tools.ls()
        assert (entry.model, entry.kv_type, entry.tokens_saved) == ("small", "f16", len(LONG))
        (notice,) = tools.notices
        assert how in notice.what
        assert not tools.verify().damaged
    (logged,) = (line for line in read_log(store, 99) if line["operation"] == "rebuild")
    assert (logged["reason"], logged["level"]) == (how, "warn")
    assert logged["records"] > 8
    with Opened(store) as opened:
        assert restore(opened.cache, opened.cache.match(LONG)).num_tokens == len(LONG)
        assert not opened.cache.notices()
