"""Events of worker threads on the main thread: joined, in order, not more often than needed."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.core.events import FetchDone, FetchProgress, JobId, TurnPhase, TurnText
from app.core.records import MessageId
from app.engine_bridge import BEAT_MS, EngineBridge, coalesce
from engine.messages import ConversationId, TurnId

TURN, OTHER = (TurnId("t"), ConversationId("c")), (TurnId("u"), ConversationId("d"))


def text(delta: str, turn: tuple[TurnId, ConversationId] = TURN) -> TurnText:
    return TurnText(*turn, MessageId(1), delta)


def test_text_of_one_turn_is_joined_and_turns_are_kept_apart() -> None:
    joined = coalesce([text("a"), text("x", OTHER), text("b"), text("y", OTHER)])
    assert joined == [text("ab"), text("xy", OTHER)]


def test_only_the_newest_progress_is_kept() -> None:
    phases = [TurnPhase(*TURN, "reading", done, 100) for done in range(5)]
    assert coalesce(list(phases)) == [phases[-1]]


def test_order_around_other_events_is_kept() -> None:
    job = JobId("j")
    story = [FetchProgress(job, "m", 1, 2), FetchDone(job, "m", Path("m")), FetchProgress(job, "m", 0, 2)]
    assert coalesce(list(story)) == story


def test_a_thousand_events_arrive_in_few_beats_on_the_main_thread(qtbot: QtBot) -> None:
    bridge, received, threads = EngineBridge(), [], set()

    def take(event: TurnText) -> None:
        received.append(event.delta)
        threads.add(threading.get_ident())

    bridge.turn_text.connect(take)

    def work() -> None:
        for _ in range(1000):
            bridge.post(text("x"))
            time.sleep(0.0002)

    begun = time.monotonic()
    worker = threading.Thread(target=work)
    worker.start()
    qtbot.waitUntil(lambda: sum(map(len, received)) == 1000)
    worker.join()
    beats = (time.monotonic() - begun) * 1000 / BEAT_MS
    assert len(received) <= 1.06 * beats + 2  # Qt's timers may be 5 % early
    assert threads == {threading.get_ident()}
