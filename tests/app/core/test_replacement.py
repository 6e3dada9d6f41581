"""What a question replaces goes with it in one step: another process sees the old state or the new one, never half."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.core.conversations import ConversationStore
from app.core.cuts import Cut
from app.core.events import TurnDone, TurnError
from app.core.planning import Planner
from app.core.plans import Plan
from app.core.prompt import history
from app.core.records import Conversation
from app.core.replacement import Replacement
from app.core.spans import Operation
from engine.messages import Tokens
from tests.app.core.test_turns import Desk

pytestmark = pytest.mark.model


@pytest.fixture
def desk(tmp_path: Path, chat: Any) -> Iterator[Desk]:
    made = Desk(tmp_path, chat)
    yield made
    made.close()


@pytest.fixture
def elsewhere(desk: Desk, tmp_path: Path) -> Iterator[ConversationStore]:
    """What another process sees, or the next one after a kill."""
    made = ConversationStore(tmp_path / "c.db")
    yield made
    made.close()


@pytest.fixture
def asked(desk: Desk) -> Conversation:
    c = desk.store.create("Colours")
    for question in ("Which colour?", "And which shape?"):
        desk.turns.ask(c.id, question)
        desk.end_of_turn()
    return c


def texts(store: ConversationStore, c: Conversation) -> list[str]:
    return [message.text for message in store.messages(c.id)]


def test_a_kill_at_any_moment_of_an_edit_leaves_the_old_or_the_new_question(
    desk: Desk, asked: Conversation, elsewhere: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen, planned, sent = desk.store.messages(asked.id), [], Planner.plan, desk.engine.send

    def plan(*args: Any, **options: Any) -> Plan:
        seen.append(elsewhere.messages(asked.id))
        return planned(*args, **options)

    def send(command: Any) -> None:
        seen.append(elsewhere.messages(asked.id))
        sent(command)

    monkeypatch.setattr(Planner, "plan", plan)
    monkeypatch.setattr(desk.engine, "send", send)
    desk.turns.edit(asked.id, before[2].id, "And which size?")
    assert isinstance(desk.end_of_turn(), TurnDone)
    while_planned, when_sent = seen
    assert while_planned == before
    assert [m.text for m in when_sent] == ["Which colour?", "It is blue.", "And which size?", ""]
    assert (when_sent[-1].state, len(when_sent[-1].tokens)) == ("partial", 0), "stored as unanswered"


def test_what_is_tried_is_taken_back(desk: Desk, asked: Conversation, elsewhere: ConversationStore) -> None:
    messages = desk.store.messages(asked.id)
    known = desk.store.computed(asked.id)
    change = Replacement((messages[3].id,), 10, Cut(messages[0].id, messages[2].id))
    with desk.store.trial():
        done = change.apply(desk.store, asked.id, 64)
        desk.store.append(asked.id, "user", "Tried", Tokens())
        assert texts(desk.store, asked)[-2:] == ["And which shape?", "Tried"]
        assert done.moment is not None
        assert done.cut is not None
    assert desk.store.messages(asked.id) == elsewhere.messages(asked.id) == messages
    assert desk.store.computed(asked.id) == known


@pytest.mark.parametrize("ending", ["stop", "failed"])
def test_an_edit_leaves_the_draft_as_it_is(desk: Desk, asked: Conversation, ending: str) -> None:
    desk.store.set_draft(asked.id, "And then")
    desk.engine.ending = ending
    desk.turns.edit(asked.id, desk.store.messages(asked.id)[2].id, "And which size?")
    desk.end_of_turn()
    assert desk.store.get(asked.id).draft == "And then"


def test_changes_of_a_history_are_told_with_the_next_turn(desk: Desk, asked: Conversation) -> None:
    answer, desk.engine.answer, desk.engine.ending = desk.engine.answer, (), "failed"
    desk.turns.edit(asked.id, desk.store.messages(asked.id)[2].id, "And which size?")
    assert isinstance(desk.end_of_turn(), TurnError)
    desk.engine.answer, desk.engine.ending = answer, "stop"
    desk.store.operations.note(asked.id, Operation("trim", 0.5, 12))
    replaced = desk.store.messages(asked.id)[2:]
    desk.turns.edit(asked.id, replaced[0].id, "And which size?")
    done = desk.end_of_turn().message.report.operations
    assert [one.name for one in done] == ["trim", "edit"], "what was not done is not told"
    assert done[0] == Operation("trim", 0.5, 12)
    assert done[1].milliseconds > 0
    assert done[1].tokens == len(history(replaced))
    desk.turns.ask(asked.id, "And then?")
    assert desk.end_of_turn().message.report.operations == ()


@pytest.mark.parametrize("ending", ["stop", "failed"])
@pytest.mark.parametrize("survey", [False, True])
def test_a_question_from_elsewhere_leaves_the_draft_as_it_is(
    desk: Desk, asked: Conversation, ending: str, survey: bool
) -> None:
    """The command line's, and that for the rest of the pages."""
    desk.store.set_draft(asked.id, "And then")
    desk.engine.answer, desk.engine.ending = desk.engine.answer if ending == "stop" else (), ending
    desk.turns.ask(asked.id, "Which size?", survey=survey, is_draft=False)
    ended = desk.end_of_turn()
    assert isinstance(ended, TurnError) == (survey or ending == "failed"), "a survey has no document to read here"
    assert desk.store.get(asked.id).draft == "And then"
