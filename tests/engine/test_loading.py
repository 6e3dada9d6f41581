"""What is said when a model is loaded."""

from __future__ import annotations

from pathlib import Path

from engine.loading import memory_warning
from engine.messages import ModelFailed, ModelLoaded, TurnFailed
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401

GB = 10**9


def test_weights_and_state_beyond_the_free_memory_are_told() -> None:
    assert memory_warning(4 * GB, 2 * GB, 6 * GB) == ()
    (text,) = memory_warning(4 * GB, 2 * GB, 6 * GB - 1)
    assert all(amount in text for amount in ("4.0 GB", "2.0 GB", "6.0 GB"))


def test_a_budget_that_fits_beside_the_weights_is_named_and_weights_alone_too() -> None:
    (text,) = memory_warning(4 * GB, 3 * GB, 5 * GB)
    assert "budget of 1.0 GB" in text
    assert "alone" not in text
    (text,) = memory_warning(8 * GB, 3 * GB, 5 * GB)
    assert "The model alone (8.0 GB)" in text
    assert "budget of" not in text


def test_the_memory_budget_bounds_the_context_and_says_so(model: Path) -> None:  # noqa: F811
    with Driver(model, None) as driver:
        loaded = driver.loaded
        assert isinstance(loaded, ModelLoaded)
        assert not loaded.bounding_bytes
    page = loaded.kv_bytes_per_token * loaded.page_tokens
    with Driver(model, None, ram_budget_bytes=3 * (page + 4096)) as driver:
        bounded = driver.loaded
        assert isinstance(bounded, ModelLoaded)
        assert bounded.context == 3 * loaded.page_tokens < loaded.context
        assert bounded.bounding_bytes == 3 * (page + 4096)
        assert bounded.model_context == loaded.context
        ways = driver.client.ways_out(bounded.context, 0, (0,), bounded.context - 8, 8)  # a page more than is held
        (larger,) = [way for way in ways if way.way == "larger"]
        assert f"holds {bounded.context:,} tokens" in larger.refused
        driver.submit("1", "c", prompt(bounded.context + 1))
        failed = driver.wait(lambda e: isinstance(e, TurnFailed))
        assert isinstance(failed, TurnFailed)
        assert "memory budget" in failed.what
        assert "MB" in failed.why
        assert driver.run("2", "d", prompt(40)).reason == "length"


def test_a_budget_under_one_page_does_not_load(model: Path) -> None:  # noqa: F811
    with Driver(model, None, ram_budget_bytes=1000) as driver:
        assert isinstance(driver.loaded, ModelFailed)
        assert "memory budget" in driver.loaded.what
