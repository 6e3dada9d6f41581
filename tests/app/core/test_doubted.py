"""An answer whose state turns out damaged after it has ended is marked, in the store and for whoever watches."""

from __future__ import annotations

import queue
import time
from pathlib import Path

import pytest

from app.core import doubted
from app.core.conversations import ConversationStore
from app.core.doubted import Doubted
from app.core.events import AnswerChanged, TurnStarted
from app.core.records import Message, PhaseTimes, TokenReport, TurnReport
from engine.messages import AnswerDoubted, ConversationId, Tokens, TurnId

REPORT = TurnReport(TokenReport(), PhaseTimes(), "whole")
WAIT_S = 30.0


class Watched:
    """A store with two answers, both started as turns, and what is told of them."""

    def __init__(self, folder: Path) -> None:
        self.store = ConversationStore(folder / "c.db")
        self.told: queue.SimpleQueue[AnswerChanged] = queue.SimpleQueue()
        self.doubted = Doubted(lambda: self.store, self.told.put)
        self.conversation = self.store.create("Talk").id
        self.answers = [self._turn(f"t{number}") for number in range(2)]

    def _turn(self, turn: str) -> Message:
        ids = Tokens.generated(range(7))
        asked = self.store.append(self.conversation, "user", "Why?", Tokens.prompt(range(3)))
        answer = self.store.append(self.conversation, "assistant", "So.", ids, "partial")
        self.doubted.hear(TurnStarted(TurnId(turn), self.conversation, asked, answer))
        return answer

    def end(self, answer: Message) -> None:
        self.store.finish_answer(answer, (), REPORT)

    def doubt(self, turn: str) -> None:
        self.doubted.hear(AnswerDoubted(TurnId(turn), self.conversation))

    def marks(self) -> list[int]:
        stored = (message.report for message in self.store.messages(self.conversation) if message.role == "assistant")
        return [report.doubtful if report else -1 for report in stored]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_the_answer_of_that_turn_is_marked_and_told(watched: Watched) -> None:
    for answer in watched.answers:
        watched.end(answer)
    watched.doubt("t0")
    changed = watched.told.get(timeout=WAIT_S)
    assert (changed.conversation, changed.message.id) == (watched.conversation, watched.answers[0].id)
    assert watched.marks() == [7, 0]


def test_one_that_has_just_ended_is_marked_once_its_report_is_there(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubted, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(doubted, "_TRIES", 3000)
    watched.doubt("t1")
    time.sleep(0.05)
    assert watched.told.empty()
    watched.end(watched.answers[1])
    watched.told.get(timeout=WAIT_S)
    assert watched.marks() == [-1, 7]


def test_turns_that_wrote_no_message_here_are_passed_over(watched: Watched) -> None:
    watched.doubted.hear(AnswerDoubted(TurnId("part of a survey"), ConversationId("c")))
    for answer in watched.answers:
        watched.end(answer)
    watched.doubt("t1")
    assert watched.told.get(timeout=WAIT_S).message.id == watched.answers[1].id
    assert watched.told.empty()
