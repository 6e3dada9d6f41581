"""Stores written by earlier programs stay readable. `data/store-v1.zip`: of the first format, when every page was
stored with its sliding windows: one conversation of 43 tokens in two layer groups."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from engine.messages import Tokens
from tests.engine.kv.small import PAGE, append, check_rows, small_layout
from tests.engine.store.opened import Opened, restore, tokens_of

OLD = Path(__file__).parent.parent.parent / "data" / "store-v1.zip"
LAYOUT = small_layout(windows=(1,))
WRITTEN = tokens_of(range(5 * PAGE + 3))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with zipfile.ZipFile(OLD) as archive:
        archive.extractall(tmp_path / "kv")
    return tmp_path / "kv"


def test_a_store_of_the_first_format_is_read_and_continued(store: Path) -> None:
    with Opened(store, LAYOUT) as it:
        assert set(it.cache.conversations.heads()) == {"a"}
        sequence = restore(it.cache, it.cache.match(WRITTEN))
        assert sequence.num_tokens == len(WRITTEN)
        check_rows(sequence)
        append(sequence, tokens_of(range(90, 90 + 3 * PAGE)))
        it.cache.save("a", sequence)
    with Opened(store, LAYOUT) as it:
        longer = WRITTEN + tokens_of(range(90, 90 + 3 * PAGE))
        again = restore(it.cache, it.cache.match(longer))
        assert again.num_tokens == len(longer)
        check_rows(again)


def test_its_segments_alone_are_enough(store: Path) -> None:
    (store / "index.sqlite").unlink()
    with Opened(store, LAYOUT) as it:
        assert it.cache.match(WRITTEN).tokens == len(WRITTEN)


def test_windows_are_there_everywhere(store: Path) -> None:
    with Opened(store, LAYOUT) as it:
        cut = Tokens(WRITTEN.ids[:27], WRITTEN.roles[:27])
        sequence = restore(it.cache, it.cache.match(cut))
        assert sequence.num_tokens == 27
        check_rows(sequence)


def test_a_record_of_a_later_format_counts_as_absent_and_is_computed(store: Path) -> None:
    segment = next((store / "segments").iterdir())
    data = bytearray(segment.read_bytes())
    at = data.index(b"PKRECORD", data.index(b"PKRECORD", data.index(b"PKRECORD") + 1) + 1)  # the second page
    data[at + 8] = 200
    segment.write_bytes(data)
    with Opened(store, LAYOUT) as it:
        pending = it.cache.begin_restore(it.cache.match(WRITTEN))
        assert pending.wait(240)
        sequence = pending.take()
        assert pending.failed == "damaged"
        assert sequence.num_tokens in (0, PAGE)
        assert [notice.what for notice in it.cache.notices()] == ["A part of a saved conversation could not be used."]
        append(sequence, Tokens(WRITTEN.ids[sequence.num_tokens :], WRITTEN.roles[sequence.num_tokens :]))
        check_rows(sequence)
