"""What of a prompt is told as read: what lies in the files, however late these are told of it, and after a cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from engine.handing import Handing
from engine.kv.disk import Handed
from engine.messages import ConversationId, Sampling, Submit, Tokens, TurnId
from engine.turn import Turn

SIZE, TOTAL = 8, 800


@dataclass
class Page:
    saved: bool = True
    writing: int = 0


@dataclass
class Disk:
    """Tells of nothing by itself."""

    asked: list[Handed] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def hand_over(self) -> Handed:
        disk = self

        class Late(Handed):
            def wait(self, timeout: float = 0.0) -> bool:
                disk.waits.append(timeout)
                return super().wait()

        self.asked.append(Late())
        return self.asked[-1]


class Reading:
    def __init__(self) -> None:
        request = Submit(TurnId("t"), ConversationId("c"), Tokens.prompt(range(TOTAL)), Sampling())
        self.turn, self.disk = Turn(request, SimpleNamespace()), Disk()  # type: ignore[arg-type]
        cache: Any = SimpleNamespace(disk=self.disk, poll=lambda: None)
        self.handing = Handing(cache)
        self.holds(0)

    def holds(self, tokens: int) -> None:
        pages = [Page() for _ in range(tokens // SIZE)]
        sequence: Any = SimpleNamespace(num_tokens=tokens, pages=pages, page_tokens=SIZE, approximate=False)
        sequence.doubted = False
        self.turn.sequence = sequence

    def told(self, beside: bool = False, step_ms: float = 100.0) -> int:
        return self.handing.progress(self.turn, 1.0, step_ms, beside=beside).told


def test_told_lags_behind_until_the_files_have_it() -> None:
    it = Reading()
    it.holds(84)
    assert it.told() == 0
    it.holds(168)
    assert (it.told(), len(it.disk.asked)) == (0, 1), "one at a time"
    it.disk.asked[0].tell(True)
    assert (it.told(), len(it.disk.asked)) == (80, 2), "what was there when it was handed over, in whole pages"
    it.disk.asked[1].tell(True)
    assert it.told() == 168
    it.holds(TOTAL)
    assert it.told() == TOTAL


def test_a_step_waits_two_percent_and_five_milliseconds_at_most() -> None:
    it = Reading()
    it.holds(80)
    for step_ms, beside in ((100.0, False), (10_000.0, False), (100.0, True)):
        it.told(beside, step_ms)
    assert it.disk.waits == pytest.approx([0.002, 0.005, 0.0])


def test_what_was_cut_is_handed_over_again() -> None:
    it = Reading()
    it.holds(400)
    it.told()
    it.disk.asked[0].tell(True)
    assert it.told() == 400
    it.holds(480)
    it.told()
    it.holds(80)
    it.turn.cut()
    assert it.told() == 80
    it.holds(160)
    assert it.told() == 80, "computed anew, and not in the files yet"
    it.disk.asked[1].tell(True)
    assert it.told() == 80, "that was of what is not there any more"
    it.disk.asked[2].tell(True)
    assert it.told() == 160


def test_a_page_that_was_not_written_is_not_told() -> None:
    it = Reading()
    it.holds(160)
    it.turn.kv.pages[5].saved = False
    it.told()
    it.disk.asked[0].tell(True)
    assert it.told() == 40


def test_where_nothing_is_saved_all_is_told() -> None:
    it = Reading()
    it.holds(160)
    assert it.told() == 0
    it.disk.asked[0].tell(False)
    assert it.told() == 160
