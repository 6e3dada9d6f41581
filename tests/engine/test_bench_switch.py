"""The benchmark of coming back runs whole, on a tiny model: its claims are checked, its times only for order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.bench_switch import Plan, _shared_ratio, measure
from engine.errors import EngineError
from engine.loading import physical_cores
from engine.messages import EngineSettings
from tests.engine.checkouts import other_checkout  # noqa: F401  (a fixture)
from tests.engine.test_service import model  # noqa: F401  (a fixture)
from tests.engine.test_window_equality import model as window_model  # noqa: F401

KEYS = {
    "prefill_ms",
    "ram_switch_ms",
    "disk_restore_ms",
    "disk_first_token_ms",
    "cold_read_mb_s",
    "bytes_written_ratio",
    "shared_ratio",
    "equal",
}


def test_coming_back_is_equal_and_writes_only_what_is_new(
    model: Path,  # noqa: F811
    tmp_path: Path,
    other_checkout: Path,  # noqa: F811
) -> None:
    figures = measure(model, EngineSettings(), 1500, 16, tmp_path)
    assert figures.threads == physical_cores()
    assert set(vars(figures)) >= KEYS
    assert json.dumps(vars(figures))
    assert figures.equal
    assert figures.tokens == 1516
    assert figures.shared_ratio == 1.0
    assert 0.99 < figures.bytes_written_ratio <= 1.1, "all that is new and the end of before, and nothing else"
    assert figures.cold_read_mb_s > 0
    assert 0 < figures.question_prefill_ms < figures.disk_first_token_ms
    assert not list(tmp_path.iterdir())


def test_more_tokens_than_the_context_are_refused(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with pytest.raises(EngineError, match="context"):
        measure(model, EngineSettings(threads=2), 9000, 16, tmp_path)


def test_a_page_in_several_layer_groups_counts_once(window_model: Path, tmp_path: Path) -> None:  # noqa: F811
    plan = Plan(window_model, EngineSettings(threads=2), 300, 16, vocabulary=200)
    assert _shared_ratio(plan, tmp_path / "store") == 1.0
