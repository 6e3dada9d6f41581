"""What is known of damage below an answer stays with it when it goes on, and counts all of it."""

from __future__ import annotations

import pytest

from app.core.borne_out import doubt
from app.core.events import TurnDone, TurnError, TurnText
from app.core.records import Conversation, Message
from tests.app.core.test_turns import Desk, desk  # noqa: F401  (a fixture)

pytestmark = pytest.mark.model
BEGUN = 2  # tokens before the stop


@pytest.fixture
def begun(desk: Desk) -> Conversation:  # noqa: F811
    """A conversation whose answer was stopped; going on ends it."""
    made = desk.store.create()
    desk.engine.hold_after = BEGUN
    turn = desk.turns.ask(made.id, "Which colour?")
    desk.until(TurnText)
    desk.turns.cancel(turn)
    assert len(desk.end_of_turn().message.tokens) == BEGUN
    desk.engine.hold_after = None
    desk.engine.cancelled.clear()  # of the first stop
    desk.engine.answer = desk.engine.answer[BEGUN:]  # type: ignore[index]
    return made


def gone_on(desk: Desk, conversation: Conversation) -> Message:  # noqa: F811
    desk.turns.continue_answer(conversation.id)
    done = desk.end_of_turn()
    assert isinstance(done, TurnDone)
    assert done.message.state == "complete"
    return done.message


def noted(desk: Desk, conversation: Conversation) -> None:  # noqa: F811
    answer = desk.store.messages(conversation.id)[-1]
    assert desk.store.doubts.note(answer.id)


def doubtful(message: Message) -> int:
    assert message.report is not None
    return message.report.doubtful


def test_what_was_in_doubt_before_it_went_on_still_is(desk: Desk, begun: Conversation) -> None:  # noqa: F811
    noted(desk, begun)
    answer = gone_on(desk, begun)
    assert doubtful(answer) == BEGUN < len(answer.tokens)
    assert doubt(answer).startswith("The first 2 tokens of this were written")


def test_what_is_noted_while_it_goes_on_is_kept(desk: Desk, begun: Conversation) -> None:  # noqa: F811
    desk.engine.hold_after = 1
    turn = desk.turns.continue_answer(begun.id)
    desk.until(TurnText)
    noted(desk, begun)
    desk.turns.cancel(turn)
    assert doubtful(desk.end_of_turn().message) >= BEGUN


def test_of_one_that_went_on_all_before_counts(desk: Desk, begun: Conversation) -> None:  # noqa: F811
    desk.engine.doubtful = 1
    answer = gone_on(desk, begun)
    assert doubtful(answer) == BEGUN + 1 < len(answer.tokens)


def test_a_failure_on_the_way_leaves_the_doubt(desk: Desk, begun: Conversation) -> None:  # noqa: F811
    noted(desk, begun)
    desk.engine.ending = "failed"
    desk.turns.continue_answer(begun.id)
    ended = desk.end_of_turn()
    assert isinstance(ended, TurnError)
    assert doubtful(desk.store.messages(begun.id)[-1]) == BEGUN


def test_one_token_is_told_as_one(desk: Desk) -> None:  # noqa: F811
    desk.engine.doubtful = 1
    desk.turns.ask(desk.store.create().id, "Which colour?")
    assert doubt(desk.end_of_turn().message).startswith("The first token of this was written")


def test_a_sound_answer_that_goes_on_is_not_in_doubt(desk: Desk, begun: Conversation) -> None:  # noqa: F811
    assert doubt(gone_on(desk, begun)) == ""
