"""Restored equals never left, for models with sliding windows: the lives of test_equality on Gemma 3 and gpt-oss.

Memory that was neither read nor computed is filled with NaN, so that attending to it shows.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kv.pool import PageBuffer, PagePool
from engine.messages import Tokens, TurnFinished
from engine.store.tools import StoreTools
from tests.engine.engine_driver import Driver
from tests.engine.test_equality import Life, Reference

MODELS = Path(__file__).parent.parent / "data" / "models"
SCRIPTS = int(os.environ.get("PAGEKEEP_SCRIPTS", "3"))
ARCHITECTURES = {"gemma3-mini": b"gemma3", "gptoss-mini": b"gpt-oss"}


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    allocate = PagePool.allocate

    def poisoned(pool: PagePool) -> PageBuffer:
        buffer = allocate(pool)
        buffer.view.fill(0xFF)
        return buffer

    monkeypatch.setattr(PagePool, "allocate", poisoned)
    shed = PagePool.shed

    def poisoned_too(pool: PagePool, buffer: PageBuffer, start: int, stop: int) -> int:
        size = shed(pool, buffer, start, stop)
        if size:
            buffer.view[start:stop].fill(0xFF)
        return size

    monkeypatch.setattr(PagePool, "shed", poisoned_too)


@pytest.fixture(params=ARCHITECTURES)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """With a context of 8,192 tokens instead of 512."""
    data = bytearray((MODELS / f"{request.param}.gguf").read_bytes())
    key = ARCHITECTURES[request.param] + b".context_length"
    value = data.index(key) + len(key) + 4  # behind the type of the value
    data[value : value + 4] = (8192).to_bytes(4, "little")
    path = tmp_path / "windows.gguf"
    path.write_bytes(data)
    return path


class SmallLife(Life):
    """For models with few tokens; documents of several pages, trims that leave the last windows far behind."""

    words = 300
    document_tokens = (800, 1300)
    longest_trim = 1000
    steps = ("ask", "both", "fork", "edit", "trim", "trim", "trim", "evict", "cancel", "read_ahead")

    def trim(self, which: int) -> None:
        """From disk, where windows lie around anchors only."""
        self.quit(which)
        super().trim(which)


@pytest.fixture
def reference(model: Path) -> Iterator[Reference]:
    with Driver(model, None) as kept, Driver(model, None) as cold:
        yield Reference(kept, cold)


def test_lives_with_windows(model: Path, tmp_path: Path, reference: Reference) -> None:
    for seed in range(SCRIPTS):
        life = SmallLife(model, tmp_path / "kv", reference, 1000 + seed)
        try:
            life.run()
        except BaseException:
            life.driver.client.close(240)
            raise
    assert reference.compared > 3 * SCRIPTS


def test_a_new_process_reads_the_last_windows_only(model: Path, tmp_path: Path) -> None:
    document = _text(2000)
    with Driver(model, tmp_path / "kv") as first:
        before = first.run("1", "c", document)
        bytes_per_token = first.loaded.kv_bytes_per_token  # type: ignore[attr-defined]
    assert before.bytes_written < 1.1 * bytes_per_token * 2012, "all of it, for whoever is killed"
    with StoreTools(tmp_path / "kv") as tools:
        assert tools.stat().live_bytes < 0.75 * bytes_per_token * 2000, "of which the windows go again"
    longer = document + before.generated + _text(30)
    with Driver(model, tmp_path / "kv") as second, Driver(model, None) as cold:
        after = second.run("1", "c", longer, history=2000)
        assert after.bytes_read < 0.5 * bytes_per_token * 2000
        assert after.reused.disk == len(document) + len(before.generated) - 1
        assert after.generated == cold.run("1", "c", longer).generated


def test_a_trim_between_anchors_is_computed_and_says_why(model: Path, tmp_path: Path) -> None:
    document = _text(2000)
    with Driver(model, tmp_path / "kv") as first:
        first.run("1", "c", document)
    shorter = Tokens(document.ids[:1500], document.roles[:1500])
    with Driver(model, tmp_path / "kv") as second, Driver(model, None) as cold:
        after = second.run("1", "c", shorter, history=1500)
        assert after.reused.total == 1024, "the checkpoint before"
        assert _reasons(after) == {"sliding window": 476}
        assert after.generated == cold.run("1", "c", shorter).generated


def _text(count: int) -> Tokens:
    return Tokens.prompt(random.Random(count).choices(range(3, 300), k=count))


def _reasons(turn: TurnFinished) -> dict[str, int]:
    return {part.reason: part.tokens for part in turn.computed}
