"""The depths of a sweep are those it says, also where layers look back only a little."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from engine.bench import sweep
from engine.messages import EngineSettings
from tests.engine.test_window_equality import model  # noqa: F401  (a fixture)


def test_rows_go_deeper_by_a_prompt_each(model: Path) -> None:  # noqa: F811
    rows = islice(sweep(model, EngineSettings(threads=2), 300, 200, 1500), 6)
    assert [row.n_kv for row in rows] == [0, 300, 600, 900]
