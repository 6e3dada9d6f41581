"""A conversation that outgrows its context: priced before it is sent, and each way out with the real engine.

Over 300 lines: every way goes from one full conversation, which takes seconds to fill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.core.borne_out import doubt
from app.core.errors import DoesNotFit, UserError
from app.core.events import TurnDone, TurnError, TurnMoved, TurnPhase
from app.core.explain import explain_lines
from app.core.planning import Planner
from app.core.plans import Plan
from app.core.prompt import history
from app.core.records import Message
from app.core.summaries import SummaryWork
from app.core.turn_parts import RunningTurn
from app.core.turn_work import TurnWork
from engine.messages import ConversationId, EngineSettings, ModelLoaded
from engine.overflow import OverflowWay
from tests.app.core.test_workspace import QUICK, Desk

pytestmark = [pytest.mark.model, pytest.mark.slow]
CONTEXT = 512
LONG = "Tell me about the river, the hill, the old bridge and the mill." * 3  # about 50 tokens
SMALL = replace(QUICK, engine=EngineSettings(context=CONTEXT))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, starter_model: Path) -> Iterator[Desk]:
    """One for all: the engine and a full conversation take seconds."""
    made = Desk(tmp_path_factory.mktemp("desk"), SMALL)
    made.load(starter_model)
    yield made
    made.workspace.close()


@pytest.fixture(scope="module")
def full(desk: Desk) -> ConversationId:
    """A conversation in which one more long question does not fit."""
    c = desk.workspace.chats.new("River").id
    for number in range(20):
        if desk.workspace.price(c, LONG).overflow:
            return c
        desk.answer(c, f"{number}. {LONG}")
    raise AssertionError("it never fills")


@pytest.fixture
def c(desk: Desk, full: ConversationId) -> ConversationId:
    """A fork of it, which shares its state."""
    return desk.workspace.chats.fork(full).id


def context(desk: Desk, c: ConversationId) -> list[Message]:
    return [message for message in desk.workspace.conversations.messages(c) if message.in_context]


def ways(desk: Desk, c: ConversationId) -> dict[str, object]:
    return {way.way: way for way in desk.workspace.price(c, LONG).ways}


def test_nothing_is_sent_and_the_ways_have_prices(desk: Desk, c: ConversationId) -> None:
    before = desk.workspace.conversations.messages(c)
    offered = ways(desk, c)
    assert list(offered) == ["recompute", "shift", "fork", "larger"]
    assert not any(way.refused for way in offered.values())
    assert 0 < offered["shift"].seconds < offered["recompute"].seconds
    assert offered["larger"].context > CONTEXT
    desk.workspace.ask(c, LONG)
    failed = desk.until(TurnError, TurnDone)
    assert isinstance(failed.error, DoesNotFit)
    assert [way.way for way in failed.error.ways] == list(offered)
    assert desk.workspace.conversations.messages(c) == before


def test_recomputed_turns_cost_what_was_said_and_come_back(desk: Desk, c: ConversationId) -> None:
    before = desk.workspace.conversations.messages(c)
    option = ways(desk, c)["recompute"]
    desk.workspace.ask(c, LONG, overflow="recompute")
    answer = desk.until(TurnDone, TurnError).message
    report = answer.report
    assert report.tokens.prompt == option.tokens
    assert report.tokens.reused.total >= option.tokens - option.computed - 1
    assert sum(part.tokens for part in report.tokens.computed) <= option.computed + 1
    assert report.recomputed(), "the kept turns are named with a reason"
    _, left = report.operations  # behind the fork
    assert (left.name, left.tokens) == ("take_out", option.dropped[1] - option.dropped[0])
    assert not report.approximate
    stored = desk.workspace.conversations.messages(c)
    assert [m.in_context for m in stored[: 2 * option.turns_dropped]] == [False] * 2 * option.turns_dropped
    assert all(m.in_context for m in stored[2 * option.turns_dropped :])
    assert {span.reason for span in report.recomputed()} == {"turns removed"}
    assert desk.workspace.engine.quote(history(context(desk, c))).new <= 1
    desk.workspace.revisions.undo_last(c)
    assert desk.workspace.conversations.messages(c)[: len(before)] == before


def test_turns_come_back_when_the_question_fails_after_they_left(
    desk: Desk, c: ConversationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, plan, looks = desk.workspace.conversations.messages(c), Planner.plan, iter(range(9))

    def second_look_fails(*args: Any) -> Plan:
        if next(looks):
            raise UserError("The document cannot be read.", "It was moved.", "Add it again.")
        return plan(*args)

    monkeypatch.setattr(Planner, "plan", second_look_fails)
    desk.workspace.ask(c, LONG, overflow="recompute")
    assert isinstance(desk.until(TurnError, TurnDone), TurnError)
    assert desk.workspace.conversations.messages(c) == before


def test_the_answer_is_that_of_a_conversation_that_never_had_the_turns(
    desk: Desk, c: ConversationId, tmp_path: Path, starter_model: Path
) -> None:
    desk.workspace.ask(c, LONG, overflow="recompute")
    answer = desk.until(TurnDone, TurnError).message
    prompt = history(context(desk, c)[:-1])
    other = Desk(tmp_path / "other", SMALL)
    try:
        other.load(starter_model)
        d = other.workspace.chats.new("clean").id
        store = other.workspace.conversations
        for message in context(desk, c)[:-1]:
            store.append(d, message.role, message.text, message.tokens, placement=message.placement)
        identity, _ = desk.workspace.conversations.computed(c)
        store.set_computed(d, identity, 0)
        other.workspace.regenerate(d)
        fresh = other.ended()
        assert history(store.messages(d)[:-1]) == prompt
        assert fresh.tokens.ids == answer.tokens.ids
    finally:
        other.workspace.close()


def test_a_state_that_is_lost_is_computed_and_no_longer_approximate(desk: Desk, c: ConversationId) -> None:
    desk.workspace.ask(c, LONG, overflow="shift")
    assert desk.until(TurnDone, TurnError).message.report.approximate
    desk.workspace.states.drop(c, disk=True)
    desk.workspace.states.save(c)
    again = desk.answer(c, "And the sea?")
    assert not again.report.approximate
    assert any(line.startswith("Exact again") for line in explain_lines(again.report)), "it is told"
    assert [span.reason for span in again.report.recomputed()] == ["dropped"]
    assert desk.answer(c, "Or the lake?").report.tokens.reused.total > 100


def test_shifted_turns_are_moved_marked_and_stay_so(desk: Desk, c: ConversationId) -> None:
    desk.workspace.ask(c, LONG, overflow="shift")
    answer = desk.until(TurnDone, TurnError).message
    assert answer.report.approximate
    assert answer.report.timings_ms.remove > 0
    assert not answer.report.recomputed()
    after = desk.answer(c, "And the sea?")
    assert after.report.approximate
    assert after.report.timings_ms.remove == 0
    assert after.report.tokens.reused.total > sum(part.tokens for part in after.report.tokens.computed)


@pytest.fixture
def stopped_early(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[..., TurnDone]:
    """Asks a question that is stopped before the engine has looked for its state."""
    submit = TurnWork._submit

    def stopped(work: TurnWork, job: RunningTurn, *args: Any) -> None:
        job.stopped.set()
        submit(work, job, *args)

    def ask(*args: Any, **options: Any) -> TurnDone:
        with monkeypatch.context() as patch:
            patch.setattr(TurnWork, "_submit", stopped)
            desk.workspace.ask(*args, **options)
            ended = desk.until(TurnDone, TurnError)
        assert isinstance(ended, TurnDone)
        assert ended.message.state == "cancelled"
        assert ended.message.report is not None
        assert ended.message.report.tokens.unread == ended.message.report.tokens.prompt, "nothing came back"
        assert not any(line.startswith("Exact again") for line in explain_lines(ended.message.report))
        return ended

    return ask


def test_moved_state_outlasts_a_turn_that_is_stopped_before_it_comes_back(
    desk: Desk, c: ConversationId, stopped_early: Callable[..., TurnDone]
) -> None:
    cuts = desk.workspace.conversations.cuts
    stopped_early(c, LONG, overflow="shift")
    assert cuts.moved(c).removal is not None, "it is still to be done"
    first = desk.answer(c, "And the sea?").report
    assert first.approximate
    moved = cuts.moved(c)
    assert moved.removal is None
    stopped_early(c, "Or the lake?")
    assert cuts.moved(c) == moved
    again = desk.answer(c, "And the pond?").report
    assert again.approximate
    assert again.tokens.reused.total > sum(part.tokens for part in again.tokens.computed)


def test_a_fork_begins_with_a_summary_the_model_wrote(desk: Desk, c: ConversationId) -> None:
    desk.workspace.ask(c, "And the sea?" + LONG, overflow="fork")
    moved = desk.until(TurnMoved, TurnError)
    assert isinstance(moved, TurnMoved), moved.error.why
    question, summary = desk.workspace.conversations.messages(moved.target.id)
    assert "River" in question.text
    assert summary.text
    answer = desk.answer(moved.target.id, moved.question)
    assert answer.report.tokens.prompt < CONTEXT
    assert len(desk.workspace.conversations.messages(c)) % 2 == 0, "the old one is as it was"


def test_a_summary_on_state_that_was_damaged_says_so(
    desk: Desk, c: ConversationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = SummaryWork._followed
    monkeypatch.setattr(SummaryWork, "_followed", lambda *given: replace(followed(*given), doubtful=1))
    desk.workspace.ask(c, "And the sea?" + LONG, overflow="fork")
    moved = desk.until(TurnMoved, TurnError)
    assert isinstance(moved, TurnMoved), moved.error.why
    _, summary = desk.workspace.conversations.messages(moved.target.id)
    assert doubt(summary).startswith("This was written on saved state that was found damaged")
    assert desk.answer(moved.target.id, moved.question).text


@pytest.mark.parametrize("way", ["recompute", "fork"])
def test_an_edited_question_goes_on_as_it_was_told_to(desk: Desk, c: ConversationId, way: OverflowWay) -> None:
    """Where it goes on elsewhere, the old question and its answer stay."""
    stored = desk.workspace.conversations.messages(c)
    longer = LONG * 3
    desk.workspace.edit(c, stored[-2].id, longer)
    failed = desk.until(TurnError, TurnDone)
    assert isinstance(failed, TurnError), "it does not fit"
    assert desk.workspace.conversations.messages(c) == stored
    desk.workspace.edit(c, stored[-2].id, longer, overflow=way)
    if way == "fork":
        desk.until(TurnPhase, TurnMoved, TurnError)
        while_summarising = desk.workspace.conversations.messages(c)
        assert while_summarising == stored, "a kill in the middle loses nothing"
    ended = desk.until(TurnDone, TurnMoved, TurnError)
    after = desk.workspace.conversations.messages(c)
    if way == "fork":
        assert isinstance(ended, TurnMoved), ended
        assert ended.question == longer
        assert after == stored
    else:
        assert isinstance(ended, TurnDone), ended
        assert [m.text for m in after[:-2]] == [m.text for m in stored[:-2]]
        assert (after[-2].text, after[0].in_context, after[-1].in_context) == (longer, False, True)
        assert desk.workspace.revisions.undo_last(c) == 2
        assert desk.workspace.conversations.messages(c) == stored, "one undo"
        desk.workspace.revisions.redo_last(c)
        assert desk.workspace.conversations.messages(c) == after


def test_nothing_is_put_aside_before_the_larger_context_is_there(
    desk: Desk, c: ConversationId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading takes long; a kill in it leaves the question that was to be replaced."""
    stored, seen = desk.workspace.conversations.messages(c), []

    def enlarge(*_: object) -> None:
        seen.append(desk.workspace.conversations.messages(c))
        raise UserError("The model cannot be loaded.", "Its file is gone.", "Fetch it again.")

    monkeypatch.setattr(desk.workspace.reloads, "enlarge", enlarge)
    desk.workspace.edit(c, stored[-2].id, LONG * 3, overflow="larger")
    assert isinstance(desk.until(TurnError, TurnDone), TurnError)
    assert seen == [stored]
    assert desk.workspace.conversations.messages(c) == stored


@pytest.mark.parametrize("way", ["recompute", "shift"])
def test_turns_leave_with_the_question_that_needs_their_room(
    desk: Desk, c: ConversationId, way: OverflowWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, seen, plan = desk.workspace.conversations.messages(c), [], Planner.plan

    def planned(*args: Any, **options: Any) -> Plan:
        seen.append(desk.workspace.conversations.messages(c))
        return plan(*args, **options)

    monkeypatch.setattr(Planner, "plan", planned)
    desk.workspace.ask(c, LONG, overflow=way)
    assert isinstance(desk.until(TurnDone, TurnError), TurnDone)
    assert len(seen) > 1
    assert all(found == stored for found in seen)


def test_a_fork_is_offered_only_where_the_question_fits_it(desk: Desk, c: ConversationId) -> None:
    """The longest question for which it is offered is answered there."""
    offered, questions = [], (f"And the sea? {LONG}" + "far " * number for number in range(240, 400, 2))
    for question in questions:
        (fork,) = [way for way in desk.workspace.price(c, question).ways if way.way == "fork"]
        if fork.refused:
            break
        offered.append((question, fork.tokens))
    assert offered
    assert "With the longest summary" in fork.refused
    question, tokens = offered[-1]
    desk.workspace.ask(c, question, overflow="fork")
    moved = desk.until(TurnMoved, TurnError)
    assert isinstance(moved, TurnMoved), moved.error.why
    assert desk.answer(moved.target.id, moved.question).report.tokens.prompt <= tokens


@pytest.mark.parametrize("way", ["recompute", "shift", "fork", "larger"])
def test_a_question_that_fits_is_answered_whatever_way_was_named(desk: Desk, way: OverflowWay) -> None:
    c = desk.workspace.chats.new(f"Short, {way}").id
    desk.answer(c, "Hello.")
    before = len(desk.workspace.conversations.list())
    desk.workspace.ask(c, "And the sea?", overflow=way)
    ended = desk.until(TurnDone, TurnError, TurnMoved, ModelLoaded)
    assert isinstance(ended, TurnDone), ended
    assert [m.in_context for m in desk.workspace.conversations.messages(c)] == [True] * 4
    assert len(desk.workspace.conversations.list()) == before


def test_a_question_longer_than_the_context_has_no_way_but_a_larger_one(desk: Desk) -> None:
    c = desk.workspace.chats.new().id
    price = desk.workspace.price(c, LONG * 14)
    assert [way.way for way in price.ways if not way.refused] == ["larger"]
    desk.workspace.ask(c, LONG * 14, overflow="recompute")
    assert "larger" in desk.until(TurnError).error.next


def test_a_memory_budget_that_cannot_hold_it_is_told_before_anything_is_stored(
    tmp_path: Path, starter_model: Path
) -> None:
    desk = Desk(tmp_path / "desk", replace(QUICK, engine=EngineSettings(context=2048, ram_budget_bytes=7_000_000)))
    try:
        desk.load(starter_model)
        c = desk.workspace.chats.new().id
        desk.workspace.ask(c, LONG * 8)
        failed = desk.until(TurnError, TurnDone)
        assert isinstance(failed, TurnError)
        assert "the budget is 7.00 MB" in failed.error.what
        assert "Raise the memory budget" in failed.error.next
        assert desk.workspace.conversations.messages(c) == ()
        assert desk.workspace.conversations.get(c).draft.startswith("Tell me")
        (larger,) = (way for way in failed.error.ways if way.way == "larger")
        assert "memory budget" in larger.refused
    finally:
        desk.workspace.close()


def test_a_larger_context_keeps_the_state(desk: Desk, c: ConversationId) -> None:
    kept = len(history(context(desk, c)))
    desk.workspace.ask(c, LONG, overflow="larger")
    assert desk.until(ModelLoaded).context > CONTEXT
    answer = desk.until(TurnDone, TurnError).message
    assert answer.report.tokens.reused.total >= kept - 1
    assert desk.workspace.settings.engine.context > CONTEXT
