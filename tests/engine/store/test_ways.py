"""Which way pages come back: mapped until both are known, and nobody waits for a large trial of the slower one."""

from __future__ import annotations

from pathlib import Path

from engine.store.ways import NAME, Ways

MB = 1 << 20


def test_the_other_way_is_tried_on_small_restores_only(tmp_path: Path) -> None:
    ways = Ways.load(tmp_path / NAME)
    assert ways.choose_map(184 * MB), "nothing is known"
    ways.saw(True, 184 * MB, 0.01)
    assert ways.choose_map(184 * MB)
    assert not ways.choose_map(20 * MB), "the trial"
    ways.saw(False, 20 * MB, 0.05)
    assert [ways.choose_map(20 * MB) for _ in range(16)] == [True] * 15 + [False]
    assert all(ways.choose_map(184 * MB) for _ in range(40))


def test_the_faster_way_is_taken_and_kept(tmp_path: Path) -> None:
    ways = Ways.load(tmp_path / NAME)
    ways.saw(True, 20 * MB, 0.05)
    ways.saw(False, 20 * MB, 0.01)
    ways.save()
    again = Ways.load(tmp_path / NAME)
    assert not again.choose_map(184 * MB)
    assert again.choose_map(1 * MB) is False
