from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.bench_parallel import Load, measure
from engine.errors import EngineError
from engine.messages import EngineSettings
from tests.engine.test_service import model  # noqa: F401  (a fixture)


def test_all_conversations_find_the_prefix_and_write_together(model: Path) -> None:  # noqa: F811
    settings = EngineSettings(threads=2, speculation=False)
    rows = list(measure(model, settings, Load(prefix=300, question=5, answer=12), (1, 3)))
    assert [row.conversations for row in rows] == [1, 3]
    assert [row.prefix_hits for row in rows] == [1, 3]
    for row in rows:
        assert row.first_token_ms > 0
        assert row.each > 0
        assert 0 < row.busy <= 1
        assert row.drafted == row.accepted == 0
    assert rows[0].busy == 1


def test_more_tokens_than_the_context_are_refused(model: Path) -> None:  # noqa: F811
    small = replace(EngineSettings(threads=1), context=256)
    with pytest.raises(EngineError, match="does not fit"):
        next(measure(model, small, Load(300, 5, 12), (1,)))
