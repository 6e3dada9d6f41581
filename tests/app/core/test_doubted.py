"""An answer whose state turns out damaged after it has ended is marked, in the store and for whoever watches."""

from __future__ import annotations

import queue
import time
from pathlib import Path

import pytest

from app.core.borne_out import doubt
from app.core.conversations import ConversationStore
from app.core.doubted import Doubted
from app.core.events import AnswerChanged, TurnDone, TurnMoved, TurnStarted
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
        done = self.store.finish_answer(answer, (), REPORT)
        turn = TurnId(f"t{self.answers.index(answer)}")
        self.doubted.hear(TurnDone(turn, self.conversation, done))

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


def test_one_that_is_about_to_end_is_marked_once_its_report_is_there(watched: Watched) -> None:
    watched.doubt("t1")
    time.sleep(0.05)
    assert watched.told.empty()
    watched.end(watched.answers[1])
    watched.told.get(timeout=WAIT_S)
    assert watched.marks() == [-1, 7]


def test_a_part_of_a_survey_is_one_of_its_answer(watched: Watched) -> None:
    watched.end(watched.answers[0])
    watched.doubt("t0-3")
    assert watched.told.get(timeout=WAIT_S).message.id == watched.answers[0].id


def test_copies_and_what_is_set_aside_are_marked_and_the_list_stays_in_order(watched: Watched) -> None:
    for answer in watched.answers:
        watched.end(answer)
    fork = watched.store.fork(watched.conversation).id
    watched.store.cuts.set_aside(watched.conversation, [watched.answers[0].id], 0, 16)
    watched.store.create("Newer")
    before = watched.store.list()
    watched.doubt("t0")
    assert [watched.told.get(timeout=WAIT_S).conversation for _ in range(2)] == [watched.conversation, fork]
    stored = [one.report for one in watched.store.messages(fork) if one.report]
    assert [report.doubtful for report in stored] == [7, 0]
    aside = watched.store.message(watched.answers[0].id).report
    assert aside is not None
    assert aside.doubtful == 7
    assert watched.store.list() == before


def test_turns_that_wrote_no_message_here_are_passed_over(watched: Watched) -> None:
    watched.doubted.hear(AnswerDoubted(TurnId("part of a survey"), ConversationId("c")))
    for answer in watched.answers:
        watched.end(answer)
    watched.doubt("t1")
    assert watched.told.get(timeout=WAIT_S).message.id == watched.answers[1].id
    assert watched.told.empty()


@pytest.mark.parametrize("early", [True, False])  # before it was stored, after
def test_the_summary_that_a_fork_begins_with_is_marked(watched: Watched, early: bool) -> None:
    fork = watched.store.create("Talk (continued)")
    watched.store.append(fork.id, "user", "What was said?", Tokens.prompt(range(3)))
    summary = watched.store.append(fork.id, "assistant", "A lot.", Tokens.prompt(range(5)))
    moved = TurnMoved(TurnId("moved"), watched.conversation, fork, "And now?", summary.id)
    for act in (watched.doubt, lambda _: watched.doubted.hear(moved))[:: 1 if early else -1]:
        act("moved")
    changed = watched.told.get(timeout=WAIT_S)
    assert (changed.conversation, changed.message.id) == (fork.id, summary.id)
    assert doubt(watched.store.message(summary.id)).startswith("This was written on saved state")
