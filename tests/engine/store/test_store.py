"""The disk tier with real pages: what comes back is what was written, or it is absent."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import numpy as np

from engine.kv.cache import KvCache
from engine.kv.layout import PageLayout
from engine.kv.sequence import Sequence
from engine.messages import Tokens
from engine.store import KvStore
from engine.store.tools import StoreTools
from tests.engine.kv.small import PAGE, append, check_rows, small_layout
from tests.engine.store.opened import Opened, restore, tokens_of

LONG = tokens_of(range(5 * PAGE + 3))


def test_a_conversation_comes_back_in_a_new_store(tmp_path: Path) -> None:
    with Opened(tmp_path) as first:
        first.converse("c", LONG)
    with Opened(tmp_path) as second:
        found = second.cache.match(LONG + tokens_of([77]))
        assert (found.tokens, found.disk_tokens, found.memory_tokens) == (len(LONG), len(LONG), 0)
        assert found.missing_reason == "not in cache"
        sequence = restore(second.cache, found)
        assert sequence.tokens == LONG
        check_rows(sequence)
        assert sequence.bytes_read >= 5 * second.cache.layout.payload_bytes
        again = second.cache.match(LONG)
        assert (again.memory_tokens, again.disk_tokens) == (len(LONG), 0)
        append(sequence, tokens_of([77, 78]))
        check_rows(sequence)


def test_readers_are_started_by_what_there_is_to_read(tmp_path: Path) -> None:
    def readers() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("kv-reader")]

    before = len(readers())
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG)
        assert len(readers()) == before
    with Opened(tmp_path) as opened:
        assert restore(opened.cache, opened.cache.match(LONG)).tokens == LONG
        assert before < len(readers()) <= before + max(1, (os.cpu_count() or 2) - 1)  # the file cache holds it
    assert len(readers()) == before


def test_layer_groups_and_every_type_round_trip(tmp_path: Path) -> None:
    for number, (key, value, windows) in enumerate(
        [("f32", "f16", ()), ("q8", "q8", (1,)), ("bf16", "q8", (0,)), ("f16", "f32", (0, 1))]
    ):
        layout = small_layout(key, value, windows)  # type: ignore[arg-type]
        folder = tmp_path / str(number)
        with Opened(folder, layout) as first:
            first.converse("c", LONG)
        with Opened(folder, layout) as second:
            sequence = restore(second.cache, second.cache.match(LONG))
            assert sequence.tokens == LONG
            check_rows(sequence)


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        sequence = opened.converse("c", LONG)
        before = opened.store.bytes_written
        append(sequence, tokens_of(range(100, 100 + 2 * PAGE)))
        queued = opened.cache.save("c", sequence)
        opened.cache.flush()
        page = opened.cache.layout.payload_bytes
        assert opened.store.bytes_written - before <= 2 * (page + 4096) + page + 2 * 4096
        assert queued < 2 * page
        assert opened.cache.report("c", sequence.tokens).tokens_unsaved == 0


def test_ten_conversations_on_one_document_store_it_once(tmp_path: Path) -> None:
    document = tokens_of(range(20 * PAGE))
    with Opened(tmp_path) as opened:
        opened.converse("c0", document + tokens_of([1000]))
        one = opened.store.bytes_written
        for number in range(1, 10):
            found = opened.cache.match(document + tokens_of([1000 + number]))
            assert found.tokens == len(document)
            sequence = opened.cache.sequence(found)
            append(sequence, tokens_of([1000 + number]))
            opened.cache.save(f"c{number}", sequence)
        opened.cache.flush()
        tail_and_head = 3 * 4096
        assert opened.store.bytes_written - one <= 9 * tail_and_head
        assert opened.cache.stat().pages == 20
        report = opened.cache.report("c3", document + tokens_of([1003]))
        assert report.shared_with == tuple(f"c{n}" for n in range(10) if n != 3)
    with StoreTools(tmp_path) as tools:
        entries = tools.ls()
        assert len(entries) == 10
        assert all(entry.tokens == entry.tokens_saved == len(document) + 1 for entry in entries)
        assert all(entry.shared_bytes > 0.9 * entry.bytes for entry in entries)
        assert tools.stat().pages == 20


def test_another_model_never_matches(tmp_path: Path) -> None:
    with Opened(tmp_path, fingerprint=b"a" * 32) as first:
        first.converse("c", LONG)
    with Opened(tmp_path, fingerprint=b"b" * 32) as other:
        assert other.cache.match(LONG).tokens == 0
        other.converse("c", LONG)
    with Opened(tmp_path, fingerprint=b"a" * 32) as first:
        assert first.cache.match(LONG).disk_tokens == len(LONG)
    with StoreTools(tmp_path) as tools:
        assert tools.stat().models == 2
        assert not tools.verify().damaged


def test_roles_are_part_of_the_key(tmp_path: Path) -> None:
    other = Tokens(LONG.ids, tuple(1 - role for role in LONG.roles))
    with Opened(tmp_path) as first:
        first.converse("c", LONG)
        assert first.cache.match(other).tokens == 0


def test_edits_reuse_up_to_the_first_changed_token_also_from_disk(tmp_path: Path) -> None:
    with Opened(tmp_path) as first:
        first.converse("c", LONG)
    for cut in (0, 1, PAGE - 1, PAGE, 3 * PAGE + 2, len(LONG) - 1):
        edited = Tokens(LONG.ids[:cut], LONG.roles[:cut]) + tokens_of([900, 901, 902])
        with Opened(tmp_path) as second:
            found = second.cache.match(edited)
            assert found.tokens == cut
            assert found.missing_reason == "edited"
            sequence = restore(second.cache, found)
            append(sequence, tokens_of([900, 901, 902]))
            check_rows(sequence)


def test_a_kept_hidden_vector_comes_back(tmp_path: Path) -> None:
    vector = np.linspace(-1, 1, 64, dtype=np.float32)
    with Opened(tmp_path) as first:
        sequence = Sequence(first.cache)
        append(sequence, LONG)
        sequence.keep_hidden(vector)
        first.cache.save("c", sequence)
    with Opened(tmp_path) as second:
        restored = restore(second.cache, second.cache.match(LONG))
        assert restored.hidden is not None
        assert (restored.hidden == vector).all()


def test_files_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    with Opened(folder) as opened:
        opened.converse("c", LONG)
        for path in [folder, *folder.rglob("*")]:
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_dropping_frees_only_what_nobody_else_uses(tmp_path: Path) -> None:
    document = tokens_of(range(4 * PAGE))
    with Opened(tmp_path) as opened:
        opened.converse("a", document + tokens_of(range(100, 100 + 2 * PAGE))).release()
        opened.converse("b", document + tokens_of([200])).release()
        opened.cache.drop("a", disk=True)
        opened.cache.flush()
        assert opened.cache.match(document + tokens_of([200])).memory_tokens == 4 * PAGE + 1
        assert opened.cache.match(document + tokens_of(range(100, 100 + 2 * PAGE))).tokens == 4 * PAGE
        opened.cache.drop("b", disk=True)
        opened.cache.flush()
        assert opened.cache.match(document).tokens == 0
        assert opened.cache.pool.used_bytes == 0
    with StoreTools(tmp_path) as tools:
        assert (tools.stat().pages, tools.stat().tails, tools.ls()) == (0, 0, [])
        assert tools.gc(1 << 30).bytes_after == 0


def test_a_fork_shares_on_disk_and_outlives_its_source(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("a", LONG).release()
        written = opened.store.bytes_written
        opened.cache.fork("a", "b")
        opened.cache.drop("a", disk=True)
        opened.cache.flush()
        assert opened.store.bytes_written - written <= 2 * 4096
    with Opened(tmp_path) as later:
        assert later.cache.match(LONG).disk_tokens == len(LONG)
        assert set(later.cache.conversations.heads()) == {"b"}


def test_memory_pressure_evicts_saved_pages_and_they_come_back(tmp_path: Path) -> None:
    layout = small_layout()
    with Opened(tmp_path, layout, ram_budget=12 * _stride(layout)) as opened:
        opened.converse("a", tokens_of(range(8 * PAGE))).release()
        opened.converse("b", tokens_of(range(500, 500 + 8 * PAGE))).release()
        found = opened.cache.match(tokens_of(range(8 * PAGE)))
        assert found.disk_tokens > 0
        assert found.tokens == 8 * PAGE
        sequence = restore(opened.cache, found)
        check_rows(sequence)


def test_single_flight_and_adoption(tmp_path: Path) -> None:
    prompt = tokens_of(range(3 * PAGE + 2))
    with Opened(tmp_path) as opened:
        cache = opened.cache
        first, second = Sequence(cache), Sequence(cache)
        key = cache.next_key(first, prompt)
        assert key is not None
        assert cache.claims.claim(key, "one")
        assert not cache.claims.claim(key, "two")
        assert cache.claims.owner_of(cache.next_key(second, prompt)) == "one"
        append(second, Tokens(prompt.ids[:3], prompt.roles[:3]))
        append(first, Tokens(prompt.ids[: 2 * PAGE], prompt.roles[: 2 * PAGE]))
        assert cache.claims.owner_of(cache.next_key(second, prompt)) is None, "sealing settles the claim"
        assert cache.adopt(second, prompt) == 2 * PAGE - 3
        assert second.block_table()[0] == first.block_table()[0]
        check_rows(second)


def test_a_cancelled_restore_gives_its_memory_back(tmp_path: Path) -> None:
    with Opened(tmp_path) as first:
        first.converse("c", LONG)
    with Opened(tmp_path) as second:
        pending = second.cache.begin_restore(second.cache.match(LONG))
        pending.cancel()
        assert pending.wait(240)
        second.cache.poll()
        assert second.cache.pool.used_bytes == 0


def _stride(layout: PageLayout) -> int:
    return KvCache(layout, b"", "", None, 0).pool.stride


def test_the_store_is_usable_by_name_only(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        opened.converse("c", LONG)
        assert isinstance(opened.store, KvStore)
        with StoreTools(tmp_path) as tools:
            assert [entry.conversation for entry in tools.ls()] == ["c"]
            assert tools.verify().records == 6


def test_pages_of_another_instruction_set_are_used_and_counted(tmp_path: Path) -> None:
    with Opened(tmp_path) as first:
        first.converse("c", LONG)
    with Opened(tmp_path) as second:
        other = KvCache(second.cache.layout, second.cache.fingerprint, "another", second.store, 4 << 20)
        assert other.report("c", LONG).tokens_foreign == len(LONG)
        sequence = restore(other, other.match(LONG))
        check_rows(sequence)
        more = tokens_of(range(900, 900 + PAGE))
        append(sequence, more)
        assert other.match(LONG + more).foreign_tokens == 5 * PAGE


def test_a_shorter_end_in_memory_hides_no_longer_one_on_disk(tmp_path: Path) -> None:
    """Another conversation ends in the same page, one token before ours; it is in memory, ours is not."""
    ours = tokens_of(range(2 * PAGE + 6))
    other = Tokens(ours.ids[:-1], ours.roles[:-1])
    with Opened(tmp_path) as opened:
        opened.converse("ours", ours).release()
        opened.converse("other", other).release()
    with Opened(tmp_path) as opened:
        first = restore(opened.cache, opened.cache.match(other))
        assert opened.cache.match(ours).tokens == len(ours), "whoever asks"
        sequence = restore(opened.cache, opened.cache.match(ours, conversation="ours"))
        assert (first.num_tokens, sequence.num_tokens) == (len(other), len(ours))
        check_rows(sequence)
        found = opened.cache.match(ours + tokens_of([3]), conversation="ours")
        assert (found.memory_tokens, found.disk_tokens) == (len(ours), 0)
