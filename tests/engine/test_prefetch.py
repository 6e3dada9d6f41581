"""Coming back: what is read for a reader who looks at a conversation is not read again for the question."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from engine.messages import ConversationId, Focus
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401


def counted_reads(driver: Driver) -> Counter[bytes]:
    """Keys of the records that are read from now on."""
    running = driver.client._service.running
    assert running is not None
    store, keys = running.cache.disk, Counter[bytes]()
    assert store is not None
    read = store.read

    def counting(requests: Any) -> Any:
        keys.update(request.record.key for request in requests)
        return read(requests)

    store.read = counting  # type: ignore[method-assign]
    return keys


def test_a_question_takes_over_what_is_read_for_the_reader(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path) as driver:
        done = driver.run("1", "c", prompt(3000))
    with Driver(model, None) as driver:
        driver.run("1", "c", prompt(3000))
        never_left = driver.run("2", "c", prompt(3000) + done.generated + prompt(7))
    with Driver(model, tmp_path) as driver:
        keys = counted_reads(driver)
        history = prompt(3000) + done.generated
        driver.client.send(Focus(ConversationId("c"), history))
        again = driver.run("3", "c", history + prompt(7))
        driver.client.send(Focus(ConversationId("c"), history))
    assert len(keys) > 10
    assert set(keys.values()) == {1}
    assert again.reused.total >= 3000
    assert again.generated == never_left.generated


def test_no_reading_ahead_beside_the_question_itself(model: Path, tmp_path: Path) -> None:  # noqa: F811
    with Driver(model, tmp_path) as driver:
        history = prompt(3000) + driver.run("1", "c", prompt(3000)).generated
    with Driver(model, tmp_path) as driver:
        keys = counted_reads(driver)
        driver.submit("2", "c", history + prompt(7))
        driver.client.send(Focus(ConversationId("c"), history))
        assert driver.result("2").reused.disk >= 2900
    assert set(keys.values()) == {1}
