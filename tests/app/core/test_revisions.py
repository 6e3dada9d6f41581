"""Changes to a conversation's history, with the real engine: what stays in front is reused, undo brings back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core.errors import UserError
from app.core.events import TurnDone, TurnError
from app.core.explain import must_be_read, operations_of
from app.core.prompt import history
from app.core.records import Message
from engine.messages import ConversationId, StateReport
from tests.app.core.test_workspace import Desk

pytestmark = [pytest.mark.model, pytest.mark.slow]
QUESTIONS = ("Name a river in France.", "Is it long?", "Which city lies on it?", "And which lake is near?")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, starter_model: Path) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("desk"))
    made.load(starter_model)
    yield made
    made.workspace.close()


@pytest.fixture(scope="module")
def asked(desk: Desk) -> ConversationId:
    c = desk.workspace.chats.new("River", documents=(desk.book(1),)).id
    for question in QUESTIONS:
        desk.answer(c, question)
    return c


@pytest.fixture
def c(desk: Desk, asked: ConversationId) -> ConversationId:
    return desk.workspace.chats.fork(asked).id


def messages(desk: Desk, c: ConversationId) -> tuple[Message, ...]:
    return desk.workspace.conversations.messages(c)


def context(desk: Desk, c: ConversationId) -> list[Message]:
    return [message for message in messages(desk, c) if message.in_context]


def written(desk: Desk, c: ConversationId) -> None:
    """Waits until the conversation's state is on disk."""
    for _ in range(1000):
        number = desk.workspace.states.request(c)
        report = desk.until(StateReport)
        if report.request == number and not report.tokens_unsaved:
            return
        time.sleep(0.01)
    pytest.fail("the state was not written")


def test_a_fork_from_a_message_shares_what_is_in_front(desk: Desk, c: ConversationId) -> None:
    second = messages(desk, c)[3]
    fork = desk.workspace.chats.fork(c, last=second.id)
    assert [m.text for m in messages(desk, fork.id)] == [m.text for m in messages(desk, c)[:4]]
    kept = len(history(messages(desk, fork.id)))
    report = desk.answer(fork.id, "Where does it end?").report
    assert report.tokens.reused.total >= kept - 1
    assert not report.recomputed()


def test_a_fork_from_a_message_outlives_its_source(desk: Desk) -> None:
    """The book is another one: no other conversation keeps its pages."""
    source = desk.workspace.chats.new("Lake", documents=(desk.book(4),)).id
    for question in QUESTIONS[:3]:
        desk.answer(source, question)
    fork = desk.workspace.chats.fork(source, last=messages(desk, source)[3].id)
    kept = len(history(messages(desk, fork.id)))
    desk.workspace.chats.trash(source)
    desk.workspace.chats.purge(source)
    report = desk.answer(fork.id, "Where does it end?").report
    assert report.tokens.reused.total >= kept - 1 > 128
    (noted,) = (e for e in desk.workspace.states.operations(fork.id) if e["operation"] == "fork")
    assert (noted["tokens"], noted["source"]) == (kept, source), "told once, and what the copy has"
    assert not report.recomputed()
    assert report.difference is None


def test_later_turns_are_removed_and_come_back(desk: Desk, c: ConversationId) -> None:
    before = messages(desk, c)
    revised = desk.workspace.revisions.trim(c, before[3].id)
    assert (revised.messages, len(messages(desk, c))) == (4, 4)
    desk.workspace.revisions.bring_back(revised)
    assert messages(desk, c) == before
    revised = desk.workspace.revisions.trim(c, before[3].id)
    report = desk.answer(c, "Where does it end?").report
    assert report.tokens.reused.total >= len(history(before[:4])) - 1
    since = messages(desk, c)
    desk.workspace.revisions.bring_back(revised)
    assert messages(desk, c) == before
    assert desk.workspace.revisions.redo_last(c) == 4
    assert messages(desk, c) == since
    with pytest.raises(UserError, match="cannot come back"):
        desk.workspace.revisions.bring_back(revised)


def test_edits_are_taken_back_with_all_that_came_after_them(desk: Desk, c: ConversationId) -> None:
    revisions, states = desk.workspace.revisions, [messages(desk, c)]
    for place, text in ((2, "Is it cold?"), (0, "Name a mountain.")):
        desk.workspace.edit(c, messages(desk, c)[place].id, text)
        desk.until(TurnDone, TurnError)
        desk.answer(c, "And then?")
        states.append(messages(desk, c))
    for state in (states[1], states[0]):
        assert revisions.undo_last(c) > 0
        assert messages(desk, c) == state
    with pytest.raises(UserError, match="Nothing can come back"):
        revisions.undo_last(c)
    report = desk.answer(c, "Where is its source?").report
    assert report.tokens.reused.total >= len(history(states[0])) - 1, "its state was kept too"
    states[0] = messages(desk, c)
    for state in states[1:]:
        revisions.redo_last(c)
        assert messages(desk, c) == state
    for state in (states[1], states[0]):
        revisions.undo_last(c)
        assert messages(desk, c) == state


def test_another_answer_is_taken_back(desk: Desk, c: ConversationId) -> None:
    before = messages(desk, c)
    desk.workspace.regenerate(c)
    desk.ended()
    desk.answer(c, "And then?")
    desk.workspace.revisions.undo_last(c)
    assert messages(desk, c) == before


def test_an_edited_question_reuses_up_to_its_first_other_token(desk: Desk, c: ConversationId) -> None:
    before = messages(desk, c)
    desk.workspace.edit(c, before[2].id, "Is it deep?")
    answer = desk.until(TurnDone, TurnError).message
    now = messages(desk, c)
    assert [m.text for m in now[:3]] == [before[0].text, before[1].text, "Is it deep?"]
    assert now[3].id == answer.id
    assert len(now) == 4
    assert answer.report.tokens.reused.total > len(history(before[:2]))
    assert answer.report.difference is not None
    assert (answer.report.difference.number, answer.report.difference.found) == (3, " deep")
    assert answer.report.difference.expected == " long"


def test_an_edited_first_question_keeps_the_document(desk: Desk, c: ConversationId) -> None:
    shared = messages(desk, c)[0].placement.shared_tokens
    assert shared > 100
    desk.workspace.edit(c, messages(desk, c)[0].id, "Name a hill.")
    answer = desk.until(TurnDone, TurnError).message
    assert answer.report.tokens.reused.of_which_shared == shared
    assert len(messages(desk, c)) == 2


def test_an_edit_that_cannot_be_asked_changes_nothing(desk: Desk, c: ConversationId) -> None:
    before = messages(desk, c)
    desk.workspace.edit(c, before[2].id, "word " * 3000)
    assert isinstance(desk.until(TurnDone, TurnError), TurnError)
    assert messages(desk, c) == before


@pytest.mark.parametrize("way", ["recompute", "shift"])
def test_a_turn_in_the_middle_leaves_the_context(desk: Desk, c: ConversationId, way: str) -> None:
    before = messages(desk, c)
    revised = desk.workspace.revisions.remove_turn(c, before[2].id, way)
    assert [m.in_context for m in messages(desk, c)] == [True, True, False, False, True, True, True, True]
    gone = len(history(before)) - len(history(context(desk, c)))
    assert revised.tokens == gone > 10
    assert revised.again <= (1 if way == "shift" else revised.behind)
    desk.workspace.states.request(c)
    state = desk.until(StateReport)
    assert state.missing[0].reason == ("to be moved up" if way == "shift" else "turns removed")
    assert abs(must_be_read(state) - revised.again) <= 1
    question = f"Where does it {'end' if way == 'shift' else 'start'}?"
    price = desk.workspace.price(c, question)
    report = desk.answer(c, question).report
    assert report.approximate == (way == "shift")
    assert (report.timings_ms.remove > 0) == (way == "shift")
    told = {one.name: one for one in operations_of(report)}
    assert list(told) == ["fork", "take_out", "move_up" if way == "shift" else "recompute"]
    assert told["take_out"].tokens == gone
    assert all(one.milliseconds > 0 for one in told.values())
    if way == "recompute":
        assert told["recompute"].milliseconds <= report.timings_ms.prefill
    assert [span.reason for span in report.recomputed()] == ([] if way == "shift" else ["turns removed"])
    assert abs(price.new_tokens - sum(part.tokens for part in report.tokens.computed)) <= 1
    desk.workspace.revisions.undo_last(c)
    assert messages(desk, c)[: len(before)] == before
    again = desk.answer(c, "Thank you.").report
    (span,) = again.recomputed()
    assert span.reason == ("moved state undone" if way == "shift" else "edited")
    assert span.stop == len(history(context(desk, c)[:-2])) - 1, "what was asked meanwhile was computed too"


def test_a_turn_removed_after_an_undo_is_read_again_as_announced(desk: Desk, c: ConversationId) -> None:
    before, revisions = messages(desk, c), desk.workspace.revisions
    revisions.trim(c, before[3].id)
    revisions.undo_last(c)
    revised = revisions.remove_turn(c, before[4].id)
    (span,) = desk.answer(c, "Where does it end?").report.recomputed()
    assert span.reason == "turns removed"
    assert abs(span.stop - span.start - revised.again) <= 1


def test_what_moves_up_is_told_apart_from_what_is_read_again(desk: Desk, c: ConversationId) -> None:
    revisions = desk.workspace.revisions
    for question in ("Is there a mill?", "mill " * 220):
        desk.answer(c, question)
    before = messages(desk, c)
    revisions.remove_turn(c, before[2].id)
    desk.answer(c, "Where does it end?")
    written(desk, c)  # the end before it is then gone from the disk, for the price as for the answer
    revisions.undo_last(c)  # with the turn that is back the last one was never read
    revised = revisions.remove_turn(c, before[8].id, "shift")
    assert min(revised.moved, revised.again) > 10
    assert revised.moved + revised.again <= revised.behind + 1
    report = desk.answer(c, "Is it deep?").report
    assert report.approximate
    assert 10 < sum(span.stop - span.start for span in report.recomputed()) <= revised.again


def test_a_copy_says_what_of_it_is_kept(desk: Desk, c: ConversationId) -> None:
    for question in ("Is there a ferry?", "And a port?"):
        desk.answer(c, question)
    assert desk.workspace.revisions.unread(c) == (0, None)
    desk.workspace.revisions.remove_turn(c, messages(desk, c)[8].id)
    again, seconds = desk.workspace.revisions.unread(desk.workspace.chats.fork(c).id)
    assert again > 10
    assert seconds is None or seconds > 0


def test_the_last_turn_is_removed_and_comes_back(desk: Desk, c: ConversationId) -> None:
    before = messages(desk, c)
    revised = desk.workspace.revisions.remove_turn(c, before[-1].id)
    assert messages(desk, c) == before[:-2]
    desk.workspace.revisions.bring_back(revised)
    assert messages(desk, c) == before


def test_removals_are_taken_back_the_last_one_first(desk: Desk, c: ConversationId) -> None:
    before, revisions = messages(desk, c), desk.workspace.revisions
    revisions.remove_turn(c, before[2].id)
    revisions.trim(c, before[5].id)
    assert len(messages(desk, c)) == 6
    revisions.undo_last(c)
    assert [m.in_context for m in messages(desk, c)] == [True, True, False, False, True, True, True, True]
    revisions.undo_last(c)
    assert messages(desk, c) == before
    with pytest.raises(UserError, match="Nothing can come back"):
        revisions.undo_last(c)
    revisions.trim(c, before[5].id)
    desk.answer(c, "And now?")
    assert revisions.undo_last(c) == 2
    assert messages(desk, c) == before


def test_all_turns_may_go_and_the_document_stays(desk: Desk, c: ConversationId) -> None:
    """The head of the first question, with the document, is taken over by the one that follows."""
    for _ in QUESTIONS[1:]:
        desk.workspace.revisions.remove_turn(c, context(desk, c)[0].id)
    (question, _) = context(desk, c)
    assert question.text == QUESTIONS[-1]
    assert question.placement.documents == messages(desk, c)[0].placement.documents
    report = desk.answer(c, "Where does it end?").report
    assert report.tokens.reused.of_which_shared == question.placement.shared_tokens > 100


def test_turns_of_another_model_that_come_back_are_made_anew(desk: Desk, c: ConversationId) -> None:
    store = desk.workspace.conversations
    desk.workspace.revisions.remove_turn(c, messages(desk, c)[2].id)
    store.set_computed(c, "another tokenizer", 10)  # as after a question to another model
    desk.workspace.revisions.undo_last(c)
    assert store.computed(c) == ("mixed", 0)
    assert desk.answer(c, "Thank you.").report.tokens.prompt == len(history(context(desk, c)[:-1]))


def test_the_first_turn_that_comes_back_counts_what_was_computed_meanwhile(desk: Desk, c: ConversationId) -> None:
    """Its head, with the document, is longer than the opening that the question behind it gets back."""
    revisions = desk.workspace.revisions
    revisions.remove_turn(c, messages(desk, c)[0].id)
    desk.answer(c, "Where does it end?")
    revisions.undo_last(c)
    assert desk.workspace.conversations.computed(c)[1] == len(history(context(desk, c))) - 1
