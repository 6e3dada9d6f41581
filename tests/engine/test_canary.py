"""Pages that came back from disk are computed again when nothing else runs; a wrong one is found and left."""

from __future__ import annotations

import time
from pathlib import Path

from engine.kv.log import read_log
from engine.messages import AnswerDoubted, ConversationId, EngineNotice, TurnFinished, TurnId
from engine.store.record import SUM_BYTES, Kind, checksum
from engine.store.segment import scan
from tests.engine.engine_driver import Driver
from tests.engine.test_service import model, prompt  # noqa: F401  (model is a fixture)


def saved(model: Path, folder: Path) -> None:  # noqa: F811
    with Driver(model, folder) as driver:
        driver.run("1", "c", prompt(900))


def mapped_again(driver: Driver) -> None:
    for node in driver.client._service.running.cache.tree:  # type: ignore[union-attr]
        node.buffer.mapped_at = time.monotonic()


def test_restored_pages_are_what_this_machine_computes(model: Path, tmp_path: Path) -> None:  # noqa: F811
    saved(model, tmp_path)
    with Driver(model, tmp_path, canary_seconds=0.05) as driver:
        driver.run("2", "c", prompt(900))
        pages = 900 // driver.loaded.page_tokens  # type: ignore[union-attr]
        while driver.client._service.running.canary.checked < pages:  # type: ignore[union-attr]
            driver.state("c", prompt(900))
        assert driver.client._service.running.canary.failed == 0  # type: ignore[union-attr]
    found = [entry for entry in read_log(tmp_path, 100) if entry["operation"] == "canary"]
    assert len(found) == pages
    assert all(entry["equal"] for entry in found)


def test_a_page_that_is_wrong_but_intact_is_found_and_computed_again(model: Path, tmp_path: Path) -> None:  # noqa: F811
    """A bit that flipped in memory before the page was written: the checksums agree with it. Whoever was answered on it
    is told, also when it was mapped again since."""
    saved(model, tmp_path)
    (segment,) = (tmp_path / "segments").iterdir()
    record = [found for found in scan(segment, 0) if found.header.kind == Kind.PAGE][1]
    header = record.header
    with segment.open("r+b") as file:
        file.seek(record.offset + header.payload_offset)
        payload = bytearray(file.read(header.payload_bytes))
        payload[10] ^= 4
        sums = checksum(bytes(payload[: header.stops[0]])) + header.sums[SUM_BYTES:]
        forged = type(header)(**{**vars(header), "sums": sums}).encode()
        file.seek(record.offset)
        file.write(forged + payload)
    with Driver(model, tmp_path, canary_seconds=0.05) as driver:
        driver.at(lambda event: isinstance(event, TurnFinished), lambda: mapped_again(driver))
        driver.run("2", "c", prompt(900))
        notice = driver.wait(lambda e: isinstance(e, EngineNotice))
        assert isinstance(notice, EngineNotice)
        assert "different" in notice.why
        driver.wait(lambda event: event == AnswerDoubted(TurnId("2"), ConversationId("c")))
        size = driver.loaded.page_tokens  # type: ignore[union-attr]
        again = driver.run("3", "d", prompt(900), history=900)
        assert again.reused.total == size
        assert again.computed[0].reason == "damaged"
    with Driver(model, tmp_path / "other") as clean:
        assert clean.run("3", "d", prompt(900)).generated == again.generated
