"""What is said when a model is loaded."""

from __future__ import annotations

from engine.loading import memory_warning

GB = 10**9


def test_weights_and_state_beyond_the_free_memory_are_told() -> None:
    assert memory_warning(4 * GB, 2 * GB, 6 * GB) == ()
    (text,) = memory_warning(4 * GB, 2 * GB, 6 * GB - 1)
    assert all(amount in text for amount in ("4.0 GB", "2.0 GB", "6.0 GB"))
