"""Idle conversations leave memory, and whoever watches hears of it."""

from __future__ import annotations

from pathlib import Path

from engine.messages import ConversationId, EngineStats, Focus, Tokens
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401


def test_what_is_idle_leaves_memory_and_the_numbers_say_so(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path, idle_seconds=0.2, canary_seconds=0.3) as driver:
        driver.client.send(Focus(ConversationId("looked at"), Tokens()))
        driver.run("1", "looked at", prompt(300))
        driver.run("2", "idle", prompt(2000, 2))
        page = driver.loaded.kv_bytes_per_token * driver.loaded.page_tokens  # type: ignore[union-attr]

        def told(most: int) -> bool:
            last = driver.events[-1]  # after the end of all turns
            return isinstance(last, EngineStats) and 0 < last.kv_memory_bytes <= most * page

        driver.wait(lambda _: told(7))
        assert driver.run("3", "looked at", prompt(300) + prompt(5, 7)).reused.memory >= 300
        assert driver.run("4", "idle", prompt(2000, 2) + prompt(5, 7)).reused.disk >= 1900
