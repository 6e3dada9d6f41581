"""Undo and redo of changes to a history, without a model: each acts on the change it names, or says why not.

Over 300 lines: every change goes from the same history.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.conversations import ConversationStore
from app.core.cuts import Cut
from app.core.errors import UserError
from app.core.gate import ModelGate
from app.core.log_words import log_words
from app.core.records import Message, MessageId, Placement
from app.core.revision_log import revision_log
from app.core.revisions import Revisions
from app.core.settings import Settings
from engine.client import EngineClient
from engine.kv.log import read_log
from engine.messages import Tokens


class Talk:
    """A conversation of three turns. What a test calls an edit is what `TurnWork.edit` stores."""

    def __init__(self, store: ConversationStore, kv: Path) -> None:
        self.store, self.id = store, store.create().id
        for text in ("one", "two", "three"):
            self.ask(text)
        engine = EngineClient(lambda event: None)  # without a model
        self.revisions = Revisions(
            lambda: store, ModelGate(lambda: None), lambda: engine, dict, revision_log(kv, Settings)
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.store.messages(self.id)

    def ask(self, text: str) -> None:
        first = 10 * len(self.store.messages(self.id))
        for place, role in enumerate(("user", "assistant")):
            tokens = Tokens.prompt(range(first + 10 * place, first + 10 * place + 10))
            self.store.append(self.id, role, text if role == "user" else f"{text}!", tokens)

    def edit(self, place: int, text: str) -> None:
        gone = [message.id for message in self.messages[place:]]
        self.store.cuts.set_aside(self.id, gone, 10 * place, 16)
        self.ask(text)

    def remove(self, place: int) -> MessageId:
        message = self.messages[place].id
        self.revisions.remove_turn(self.id, message)
        return message

    def texts(self) -> list[str]:
        """The questions; in brackets those that have left the context."""
        return [m.text if m.in_context else f"({m.text})" for m in self.messages if m.role == "user"]


@pytest.fixture
def talk(store: ConversationStore, tmp_path: Path) -> Talk:
    return Talk(store, tmp_path)


def test_a_turn_comes_back_and_a_later_edit_stays(talk: Talk) -> None:
    before = talk.messages
    removed = talk.remove(0)
    talk.edit(4, "another three")
    talk.revisions.bring_back_turns(talk.id, removed)
    assert talk.texts() == ["one", "two", "another three"]
    assert talk.messages[:4] == before[:4]
    with pytest.raises(UserError, match="in the context"):
        talk.revisions.bring_back_turns(talk.id, removed)
    talk.revisions.undo_last(talk.id)
    assert talk.messages == before


def test_the_turns_that_left_last_come_back_and_a_later_answer_stays(talk: Talk) -> None:
    talk.remove(2)
    talk.edit(5, "again")
    talk.revisions.bring_back_turns(talk.id)
    assert all(message.in_context for message in talk.messages)
    assert talk.messages[-1].text == "again!"


def test_a_turn_does_not_come_back_where_later_changes_rest_on_its_removal(talk: Talk) -> None:
    removed = talk.remove(0)
    talk.edit(2, "another two")  # the question that had taken the head over is aside
    with pytest.raises(UserError, match="cannot come back yet"):
        talk.revisions.bring_back_turns(talk.id, removed)
    assert talk.texts() == ["(one)", "another two"]
    talk.revisions.undo_last(talk.id)
    talk.remove(2)  # another cut, which moves the same head on
    with pytest.raises(UserError, match="cannot come back yet"):
        talk.revisions.bring_back_turns(talk.id, removed)
    assert talk.texts() == ["(one)", "(two)", "three"]
    talk.revisions.undo_last(talk.id)
    talk.revisions.bring_back_turns(talk.id, removed)
    assert talk.texts() == ["one", "two", "three"]


def test_a_turn_of_which_state_was_moved_waits_for_the_later_change(talk: Talk) -> None:
    turns = talk.messages
    talk.store.cuts.apply(talk.id, Cut(turns[0].id, turns[2].id, "shift"), 16)
    talk.edit(4, "another three")
    with pytest.raises(UserError, match="cannot come back yet"):
        talk.revisions.bring_back_turns(talk.id, turns[0].id)
    talk.revisions.undo_last(talk.id)
    talk.revisions.bring_back_turns(talk.id, turns[0].id)
    assert talk.messages == turns


def test_turns_that_left_before_a_fork_say_why_they_stay(talk: Talk) -> None:
    talk.remove(0)
    fork = talk.store.fork(talk.id).id
    with pytest.raises(UserError, match="cannot come back"):
        talk.revisions.bring_back_turns(fork, talk.store.messages(fork)[0].id)


def test_redo_does_the_last_undo_again_and_no_other(talk: Talk) -> None:
    revisions = talk.revisions
    talk.edit(4, "another three")
    revisions.undo_last(talk.id)
    talk.remove(0)
    removed = talk.messages
    with pytest.raises(UserError, match="nothing to redo"):
        revisions.redo_last(talk.id)  # it would swap the old edit in
    revisions.undo_last(talk.id)
    assert talk.texts() == ["one", "two", "three"]
    assert revisions.redo_last(talk.id) == 0
    assert talk.texts() == ["(one)", "two", "three"]
    assert [m.tokens for m in talk.messages] == [m.tokens for m in removed]
    with pytest.raises(UserError, match="nothing to redo"):
        revisions.redo_last(talk.id)
    revisions.undo_last(talk.id)
    assert talk.texts() == ["one", "two", "three"]


@pytest.mark.parametrize("kept", [True, False])
def test_an_edit_that_turns_made_room_for_is_one_change(talk: Talk, kept: bool) -> None:
    """As `TurnWork.edit` stores it: aside, cut, then the question, which takes the head over where no other does."""
    before, store, revisions = talk.messages, talk.store, talk.revisions
    place = 4 if kept else 2
    moment = store.cuts.set_aside(talk.id, [message.id for message in before[place:]], 10 * place, 16)
    store.cuts.apply(talk.id, Cut(before[0].id, before[2].id if kept else None), 16, edit=moment)
    talk.ask("in other words")
    if not kept:
        question = talk.messages[-2]
        store.cuts.adopt(before[0].id, question.id, question.tokens, question.placement)
    edited = talk.messages
    for _ in range(2):
        assert talk.texts() == (["(one)", "two", "in other words"] if kept else ["(one)", "in other words"])
        assert revisions.undo_last(talk.id) == 2
        assert talk.messages == before, "one undo"
        with pytest.raises(UserError, match="Nothing can come back"):
            revisions.undo_last(talk.id)
        assert revisions.redo_last(talk.id) == len(before) - place
        assert talk.messages == edited, "one redo"
        with pytest.raises(UserError, match="nothing to redo"):
            revisions.redo_last(talk.id)


def test_turns_that_made_room_for_an_edit_come_back_alone_where_they_are_wanted(talk: Talk) -> None:
    before = talk.messages
    moment = talk.store.cuts.set_aside(talk.id, [message.id for message in before[4:]], 40, 16)
    talk.store.cuts.apply(talk.id, Cut(before[0].id, before[2].id), 16, edit=moment)
    talk.ask("in other words")
    talk.revisions.bring_back_turns(talk.id)
    assert talk.texts() == ["one", "two", "in other words"]
    talk.revisions.redo_last(talk.id)
    assert talk.texts() == ["(one)", "two", "in other words"]
    talk.revisions.undo_last(talk.id)
    assert talk.messages == before


def test_undos_are_redone_one_after_another(talk: Talk) -> None:
    revisions, states = talk.revisions, [talk.texts()]
    talk.edit(4, "another three")
    states.append(talk.texts())
    talk.remove(0)
    states.append(talk.texts())
    revisions.trim(talk.id, talk.messages[3].id)
    states.append(talk.texts())
    for _ in range(2):
        for state in states[-2::-1]:
            revisions.undo_last(talk.id)
            assert talk.texts() == state
        for state in states[1:]:
            revisions.redo_last(talk.id)
            assert talk.texts() == state
    with pytest.raises(UserError, match="nothing to redo"):
        revisions.redo_last(talk.id)


def test_a_question_asked_after_an_undo_goes_aside_for_the_redo(talk: Talk) -> None:
    talk.edit(4, "another three")
    talk.revisions.undo_last(talk.id)
    talk.ask("four")
    assert talk.revisions.redo_last(talk.id) == 4
    assert talk.texts() == ["one", "two", "another three"]
    assert talk.revisions.undo_last(talk.id) == 2
    assert talk.texts() == ["one", "two", "three", "four"]


def test_a_removal_that_moved_state_is_redone_the_same_way_where_that_can_be(talk: Talk) -> None:
    turns = talk.messages
    talk.store.cuts.apply(talk.id, Cut(turns[0].id, turns[2].id, "shift"), 16)
    moved = talk.store.cuts.moved(talk.id)
    talk.revisions.undo_last(talk.id)
    assert talk.store.cuts.redo(talk.id, 16, movable=True) == 0
    assert talk.store.cuts.moved(talk.id) == moved
    talk.revisions.undo_last(talk.id)
    talk.revisions.redo_last(talk.id)  # no model is there to move anything
    assert not talk.store.cuts.moved(talk.id).shifts
    assert talk.texts() == ["(one)", "two", "three"]


def test_what_was_done_is_in_the_log_of_the_kept_state(talk: Talk, tmp_path: Path) -> None:
    talk.revisions.trim(talk.id, talk.messages[3].id)
    talk.remove(0)
    talk.revisions.undo_last(talk.id)
    talk.revisions.redo_last(talk.id)
    entries = read_log(tmp_path, 10, "info", talk.id)
    assert [entry["operation"] for entry in entries] == ["trim", "take_out", "undo", "redo"]
    assert [(entry["messages"], entry["tokens"]) for entry in entries[:2]] == [(2, 20), (2, 20)]
    assert log_words(entries[0]).startswith("trim      2 messages, 20 tokens, ")
    assert all(entry["milliseconds"] > 0 for entry in entries[:2])
    assert log_words({**entries[1], "milliseconds": 0.41}) == "take out  2 messages, 20 tokens, way recompute, 0.4 ms"
    assert log_words({**entries[2], "milliseconds": 5.0}) == "undo      5.0 ms"


def test_what_is_taken_back_before_a_turn_followed_it_is_not_told_with_that(talk: Talk) -> None:
    def noted() -> list[str]:
        return [one.name for one in talk.store.operations.take(talk.id)]

    talk.remove(0)
    talk.revisions.undo_last(talk.id)
    assert noted() == []
    removed = talk.remove(0)
    talk.revisions.bring_back_turns(talk.id, removed)
    assert noted() == []
    talk.revisions.bring_back(talk.revisions.trim(talk.id, talk.messages[1].id))
    assert noted() == []
    talk.remove(0)
    assert noted() == ["take_out"], "a turn follows"
    talk.revisions.undo_last(talk.id)
    assert noted() == ["undo"]
    talk.revisions.redo_last(talk.id)
    talk.revisions.undo_last(talk.id)
    talk.revisions.redo_last(talk.id)
    assert noted() == ["redo"]


def test_what_is_told_is_what_stands_whichever_change_is_taken_back(talk: Talk) -> None:
    def noted() -> list[str]:
        return [one.name for one in talk.store.operations.take(talk.id)]

    first = talk.revisions.remove_turn(talk.id, talk.messages[0].id)
    second = talk.revisions.trim(talk.id, talk.messages[3].id)
    talk.revisions.bring_back(first)
    assert noted() == ["trim"]
    talk.revisions.bring_back(second)
    assert noted() == ["undo"], "a turn has told of the trim"
    third = talk.revisions.trim(talk.id, talk.messages[3].id)
    removed = talk.remove(0)
    assert noted() == ["trim", "take_out"]
    talk.revisions.bring_back_turns(talk.id, removed)
    talk.revisions.bring_back(third)
    talk.revisions.redo_last(talk.id)
    assert noted() == ["undo"], "of the turns; that of the trim was done again"


def test_a_question_without_an_answer_leaves_no_tokens_and_changes_nothing_behind_it(
    talk: Talk, tmp_path: Path
) -> None:
    head = Placement(shared_tokens=1800, head_tokens=1805)
    mine = talk.store.create().id
    asked = [("Stopped?", 1827, ""), ("Read?", 1831, "Yes."), ("And?", 9, "No.")]
    for question, tokens, answer in asked:
        where = head if tokens > 1000 else Placement(head_tokens=2)
        talk.store.append(mine, "user", question, Tokens.prompt(range(tokens)), placement=where)
        talk.store.append(mine, "assistant", answer, Tokens.generated(range(len(answer))), "cancelled")
    talk.store.set_computed(mine, "t", 1845)
    before = talk.store.messages(mine)
    done = talk.revisions.remove_turn(mine, before[0].id)
    assert (done.messages, done.tokens, done.behind) == (2, 0, 0)
    entry = read_log(tmp_path, 1, "info", mine)[-1]
    assert entry["tokens"] == 0, "the log says so too"
    assert talk.store.messages(mine) == before[2:], "the question behind it does not take its head over"
    assert talk.store.computed(mine)[1] == 1845
    talk.revisions.undo_last(mine)
    assert talk.store.messages(mine) == before, "nothing goes aside for it"
    talk.revisions.redo_last(mine)
    assert talk.store.messages(mine) == before[2:]
    talk.revisions.undo_last(mine)
    # What is answered leaves with its own tokens, whatever stands unanswered before it.
    done = talk.revisions.trim(mine, before[3].id)
    assert done.tokens == 9 + 3
    talk.revisions.bring_back(done)
    cut = talk.revisions.remove_turn(mine, before[2].id)
    assert cut.tokens == 1831 + 4 - 1805 + 2, "all but the head, which takes the place of the next question's own"
    assert [m.text for m in talk.store.messages(mine) if m.in_context][:2] == ["Stopped?", ""]
