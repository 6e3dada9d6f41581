"""Turns against an engine that follows a script; tokenizer, chat format, store and prompts are the real ones.

Over 300 lines: the scripted engine and every way a turn can end, side by side.
"""

import queue
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from app.core.citation_check import Answered, figures
from app.core.conversations import ConversationStore
from app.core.engine_events import EngineEvents
from app.core.errors import NothingReadable, UserError
from app.core.events import TurnDone, TurnError, TurnStarted, TurnText, TurnWithdrawn
from app.core.gate import ModelGate, ReadyModel
from app.core.history import Histories
from app.core.lookups import Scope
from app.core.planning import Planner
from app.core.prompt import Context, history
from app.core.records import Conversation, Message, TurnReport
from app.core.settings import Settings
from app.core.turn_parts import TurnServices
from app.core.turns import Turns
from app.timing_panel.numbers import lines
from assets import sample_pdf
from engine.messages import (
    Cancel,
    Command,
    ComputedRange,
    ModelLoaded,
    PrefillProgress,
    ReusedTokens,
    Submit,
    TokenDelta,
    Tokens,
    TurnFailed,
    TurnFinished,
    TurnRestored,
    TurnTimings,
)
from rag import Library
from tests.rag.pdf_files import PICTURE, write_pdf

pytestmark = pytest.mark.model
WAIT_S = 120.0


@dataclass(frozen=True)
class Handle:
    """The parts of engine.loading.ModelHandle that turns use."""

    tokenizer: Any
    chat: Any
    context: int
    info: ModelLoaded


@dataclass
class ScriptedEngine:
    """Answers a Submit with the ids of `answer`, then `ending`; holds after `hold_after` ids until cancelled."""

    answer: Sequence[int] | Callable[[Submit], Sequence[int]]
    emit: Callable[[Any], None]
    hold_after: int | None = None
    ending: str = "stop"
    submitted: list[Submit] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)
    decode: Callable[[Sequence[int]], str] = str
    read_before_hold: int = 0  # tokens of the prompt
    doubtful: int = 0  # tokens of each answer

    def send(self, command: Command) -> None:
        if isinstance(command, Cancel):
            self.cancelled.set()
        elif isinstance(command, Submit):
            self.submitted.append(command)
            threading.Thread(target=self._run, args=(command,)).start()

    def ways_out(self, *prompt: Any) -> tuple[Any, ...]:
        return ()

    def _run(self, turn: Submit) -> None:
        answer = self.answer(turn) if callable(self.answer) else self.answer
        ids, name = list(answer), (turn.turn, turn.conversation)
        self.emit(TurnRestored(*name, ReusedTokens(memory=turn.history_tokens), 0.0, 0.0))
        if self.hold_after is not None:
            ids = ids[: self.hold_after]
            if self.read_before_hold:
                self.emit(PrefillProgress(*name, self.read_before_hold, len(turn.tokens), 100.0, self.read_before_hold))
        for token in ids:
            self.emit(TokenDelta(*name, self.decode([token]), (token,)))
        reason = self.ending
        if self.hold_after is not None:
            assert self.cancelled.wait(WAIT_S)
            reason = "cancelled"
        if reason == "failed":
            self.emit(TurnFailed(*name, "The engine broke.", "A reason.", "Do this."))
            return
        new = ComputedRange(len(turn.tokens) - turn.history_tokens, "new")
        reused = ReusedTokens(memory=turn.history_tokens)
        text = self.decode(ids)
        self.emit(
            TurnFinished(
                *(*name, reason, text, Tokens.generated(ids), len(turn.tokens), reused, (new,), TurnTimings(), 0, 0),
                doubtful=min(self.doubtful, len(ids)),
            )
        )


class Desk:
    """Turns with a store, an empty library and a scripted engine."""

    def __init__(self, folder: Path, chat: Any, context: int = 8192) -> None:
        self.store = ConversationStore(folder / "c.db")
        self.library = Library(folder / "library")
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.router = router = EngineEvents(self.events.put)
        self.text_ids = chat.format.text_ids
        self.end = chat.format.glue.end_of_turn
        answer = [*self.text_ids("It is blue."), self.end]
        self.engine = ScriptedEngine(answer, router.handle)
        self.engine.decode = lambda ids: chat.decode([i for i in ids if i not in chat.end_ids])
        info = ModelLoaded(Path("m"), "M", "llama", context, (), 0, 0, 64, "f", 0.0)
        gate = ModelGate(lambda: Handle(chat.format._encoder, chat.format.glue, context, info))  # type: ignore[arg-type,return-value]
        gate.handle_event(info)
        self.gate = gate
        self.format = chat.format
        planner = Planner(lambda: self.library, self.library.search, Settings, lambda: self.store.dates)
        self.texts, self.planner_scopes = planner.texts, planner.scopes
        self._emit: Callable[[Any], None] = self.events.put
        self.turns = Turns(
            TurnServices(
                lambda: self.store,
                lambda: self.library,
                lambda: self.engine,  # type: ignore[arg-type,return-value]
                Settings,
                gate,
                router,
                planner,
                Histories(lambda: self.store, planner.texts),
                lambda event: self._emit(event),
                lambda conversation, option: None,
            )
        )

    def emit_through(self, listener: Callable[[Any], None]) -> None:
        self._emit = listener

    def until(self, *kinds: type) -> Any:
        while True:
            event = self.events.get(timeout=WAIT_S)
            if isinstance(event, kinds):
                return event

    def end_of_turn(self) -> Any:
        return self.until(TurnDone, TurnError, TurnWithdrawn)

    def close(self) -> None:
        self.turns.close(WAIT_S)
        self.library.close()
        self.store.close()


@pytest.fixture
def desk(tmp_path: Path, chat: Any) -> Iterator[Desk]:
    made = Desk(tmp_path, chat)
    yield made
    made.close()


def test_a_turn_is_stored_and_reported(desk: Desk) -> None:
    c = desk.store.create()
    desk.store.set_draft(c.id, "Which colour?")
    turn = desk.turns.ask(c.id, " Which colour? ")
    started = desk.until(TurnStarted)
    assert started.turn == turn
    done = desk.end_of_turn()
    question, answer = desk.store.messages(c.id)
    assert done.message == answer
    assert (question.text, answer.text, answer.state) == ("Which colour?", "It is blue.", "complete")
    assert answer.tokens == Tokens.generated(desk.engine.answer), "the end token included"
    assert desk.engine.submitted[0].tokens == question.tokens
    assert answer.report is not None
    assert answer.report.tokens.prompt == len(question.tokens)
    assert desk.store.get(c.id).draft == ""
    assert desk.store.get(c.id).title == "Which colour"
    assert desk.turns.running() == {}


def test_the_next_turn_splices_stored_ids(desk: Desk) -> None:
    c = desk.store.create()
    desk.turns.ask(c.id, "Which colour?")
    desk.end_of_turn()
    stored = history(desk.store.messages(c.id))
    desk.turns.ask(c.id, "Sure?")
    desk.end_of_turn()
    submit = desk.engine.submitted[1]
    assert submit.tokens.ids[: len(stored)] == stored.ids
    assert submit.tokens.roles[: len(stored)] == stored.roles
    assert submit.history_tokens == len(stored) - 1, "the last sampled token has no KV"
    assert submit.shared_tokens == desk.store.messages(c.id)[0].placement.shared_tokens > 0


def test_stopping_keeps_what_was_answered_and_the_answer_can_go_on(desk: Desk) -> None:
    c = desk.store.create()
    desk.engine.hold_after = 2
    turn = desk.turns.ask(c.id, "Which colour?")
    desk.until(TurnText)
    desk.turns.cancel(turn)
    message = desk.end_of_turn().message
    assert message.state == "cancelled"
    assert message.tokens.ids == tuple(desk.engine.answer[:2])
    assert desk.store.computed(c.id)[1] == len(history(desk.store.messages(c.id))) - 1
    desk.engine.hold_after = None
    desk.engine.answer = desk.engine.answer[2:]
    desk.turns.continue_answer(c.id)
    assert desk.until(TurnStarted).continued
    done = desk.end_of_turn().message
    assert (done.text, done.state, done.id) == ("It is blue.", "complete", message.id)
    assert desk.engine.submitted[1].tokens == desk.engine.submitted[0].tokens + message.tokens
    with pytest.raises(UserError, match="complete"):
        raise_error(desk, desk.turns.continue_answer(c.id))


def raise_error(desk: Desk, turn: str) -> None:
    event = desk.end_of_turn()
    assert isinstance(event, TurnError)
    raise event.error


def test_partial_answers_are_stored_while_they_stream(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.answers.STORE_EVERY_S", 0.0)
    c = desk.store.create()
    desk.engine.hold_after = 3
    turn = desk.turns.ask(c.id, "Which colour?")
    for _ in range(3):
        desk.until(TurnText)
    found = wait_for(lambda: len(desk.store.messages(c.id)[-1].tokens) == 3, desk, c.id)
    assert (found.state, found.text) == ("partial", desk.engine.decode(desk.engine.answer[:3]))
    desk.turns.cancel(turn)
    desk.end_of_turn()


def wait_for(test: Callable[[], bool], desk: Desk, conversation: Any) -> Any:
    waiting = threading.Event()
    for _ in range(200):
        if test():
            break
        waiting.wait(0.02)
    return desk.store.messages(conversation)[-1]


def test_a_failure_keeps_the_question(desk: Desk) -> None:
    c = desk.store.create()
    desk.engine.ending = "failed"
    desk.turns.ask(c.id, "Which colour?")
    event = desk.end_of_turn()
    assert isinstance(event, TurnError)
    assert (event.error.what, event.error.next) == ("The engine broke.", "Do this.")
    question, answer = desk.store.messages(c.id)
    assert (question.text, answer.state, answer.text) == ("Which colour?", "failed", "It is blue.")
    desk.engine.ending = "stop"
    desk.turns.regenerate(c.id)
    desk.end_of_turn()
    assert [m.state for m in desk.store.messages(c.id)] == ["complete", "complete"]
    assert desk.engine.submitted[1].tokens == question.tokens


def test_regenerating_puts_the_old_answer_aside_and_changes_the_seed(desk: Desk) -> None:
    c = desk.store.create()
    desk.turns.ask(c.id, "Which colour?")
    first = desk.end_of_turn().message
    desk.turns.regenerate(c.id)
    second = desk.end_of_turn().message
    assert second.id != first.id
    assert [m.id for m in desk.store.messages(c.id)][1:] == [second.id]
    assert desk.store.superseded_count(c.id) == 1
    one, two = desk.engine.submitted
    assert one.tokens == two.tokens
    assert one.sampling.seed != two.sampling.seed


def answered_once_then_failing(desk: Desk) -> tuple[Conversation, tuple[Message, ...]]:
    """A conversation of one question and answer; what is asked next fails before its first word."""
    c = desk.store.create()
    desk.turns.ask(c.id, "Which colour?")
    desk.end_of_turn()
    desk.engine.answer, desk.engine.ending = (), "failed"
    return c, desk.store.messages(c.id)


def test_a_failure_before_the_first_word_leaves_the_question_as_the_draft(desk: Desk) -> None:
    c, before = answered_once_then_failing(desk)
    desk.turns.ask(c.id, "And which shape?")
    event = desk.end_of_turn()
    assert isinstance(event, TurnError)
    assert (event.message, event.error.what) == (None, "The engine broke.")
    assert desk.store.messages(c.id) == before
    assert desk.store.get(c.id).draft == "And which shape?"


def test_another_answer_that_fails_at_once_leaves_the_old_one(desk: Desk) -> None:
    c, before = answered_once_then_failing(desk)
    desk.turns.regenerate(c.id)
    assert isinstance(desk.end_of_turn(), TurnError)
    assert desk.store.messages(c.id) == before


def test_what_does_not_fit_stores_nothing_and_keeps_the_draft(tmp_path: Path, chat: Any) -> None:
    desk = Desk(tmp_path, chat, context=100)
    c = desk.store.create()
    desk.turns.ask(c.id, "long " * 200)
    event = desk.end_of_turn()
    assert isinstance(event, TurnError)
    assert event.message is None
    assert "context" in event.error.what
    assert desk.store.messages(c.id) == ()
    assert desk.store.get(c.id).draft.startswith("long long")
    assert desk.engine.submitted == []
    desk.close()


def test_one_turn_per_conversation_several_conversations(desk: Desk) -> None:
    a, b = desk.store.create("a"), desk.store.create("b")
    desk.engine.hold_after = 1
    turns = [desk.turns.ask(c.id, "x") for c in (a, b)]
    desk.until(TurnText)
    desk.until(TurnText)
    assert desk.turns.running() == {a.id: turns[0], b.id: turns[1]}
    with pytest.raises(UserError, match="still answering"):
        desk.turns.ask(a.id, "y")
    for turn in turns:
        desk.turns.cancel(turn)
    desk.end_of_turn()
    desk.end_of_turn()


def test_stopping_while_the_model_loads_withdraws_the_question(desk: Desk) -> None:
    c = desk.store.create()
    desk.gate.expect(Path("m"))
    turn = desk.turns.ask(c.id, "Which colour?")
    desk.turns.cancel(turn)
    assert isinstance(desk.end_of_turn(), TurnWithdrawn)
    assert desk.store.messages(c.id) == ()
    assert desk.store.get(c.id).draft == "Which colour?"


def test_a_question_waits_for_the_model(desk: Desk) -> None:
    c = desk.store.create()
    info = desk.gate.current().handle.info
    desk.gate.expect(Path("m"))
    desk.turns.ask(c.id, "Which colour?")
    assert desk.engine.submitted == []
    desk.gate.handle_event(info)
    assert isinstance(desk.end_of_turn(), TurnDone)


def test_an_answer_in_circles_is_ended(desk: Desk) -> None:
    c = desk.store.create()
    piece = desk.text_ids("The desk is a computer. ")
    desk.engine.answer = [*piece] * 10
    desk.engine.hold_after = len(desk.engine.answer)
    desk.turns.ask(c.id, "Which colour?")
    message = desk.end_of_turn().message
    assert message.state == "complete"
    assert message.report.finish_reason == "repetition"


def test_an_answer_in_circles_ends_where_they_are_seen_not_when_the_engine_hears_of_it(desk: Desk) -> None:
    piece = desk.text_ids("The desk is a computer. ")
    stored = []
    for times in (4, 10):  # tokens that came before the engine stopped
        c = desk.store.create()
        desk.engine.answer = [*piece] * times
        desk.turns.ask(c.id, "Which colour?")
        message = desk.end_of_turn().message
        assert message.report.finish_reason == "repetition"
        stored.append((message.text, message.tokens))
        assert message.report.tokens.generated == len(message.tokens), "what ran on is not counted"
    assert stored[0] == stored[1]
    assert len(stored[0][1]) <= 3 * len(piece)


def test_another_tokenizer_gets_new_ids_once(desk: Desk) -> None:
    c = desk.store.create()
    desk.turns.ask(c.id, "Which colour?")
    desk.end_of_turn()
    before = history(desk.store.messages(c.id))
    desk.store.set_computed(c.id, "ids of another tokenizer", 77)
    desk.turns.ask(c.id, "Sure?")
    desk.end_of_turn()
    submit = desk.engine.submitted[1]
    assert submit.history_tokens == 0
    assert submit.tokens.ids[: len(before)] == before.ids, "same text, same tokenizer after all"
    assert set(submit.tokens.roles) == {0}
    identity = ReadyModel.of(desk.gate.current().handle).identity
    assert desk.store.computed(c.id)[0] == identity


def test_a_conversation_of_another_process_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    c = desk.store.create()
    with desk.store.lease(c.id):
        monkeypatch.setattr("os.getpid", lambda: 1)
        desk.turns.ask(c.id, "x")
        event = desk.end_of_turn()
        monkeypatch.undo()
    assert isinstance(event, TurnError)
    assert "another Pagekeep" in event.error.what
    assert desk.store.messages(c.id) == ()


def test_an_engine_that_is_gone_fails_the_turn(desk: Desk) -> None:
    c = desk.store.create()
    desk.engine.hold_after = 1
    desk.turns.ask(c.id, "x")
    desk.until(TurnText)
    fault = UserError("The engine has stopped.", "why", "next")
    desk.router.fail_all(fault)
    event = desk.end_of_turn()
    desk.engine.cancelled.set()
    assert isinstance(event, TurnError)
    assert event.error.what == fault.what
    assert desk.store.messages(c.id)[-1].state == "failed"


def test_waiting_for_a_model_ends_with_the_engine(desk: Desk) -> None:
    c = desk.store.create()
    desk.gate.expect(Path("m"))
    desk.turns.ask(c.id, "x")
    assert desk.gate.fail(UserError("The engine has stopped.")) == Path("m")
    event = desk.end_of_turn()
    assert isinstance(event, TurnError)
    assert "stopped" in event.error.what


def test_a_full_disk_ends_the_turn_and_frees_the_conversation(desk: Desk) -> None:
    c = desk.store.create()
    database = desk.store._database.db
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    desk.turns.ask(c.id, "Which colour? " * 1500)
    event = desk.end_of_turn()
    assert isinstance(event, TurnError)
    assert "full" in event.error.why
    assert event.error.next
    assert desk.turns.running() == {}
    database.execute("PRAGMA max_page_count = 100000")
    desk.turns.ask(c.id, "Which colour?")
    assert isinstance(desk.end_of_turn(), TurnDone)


def test_a_fault_while_streaming_stops_the_engine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.answers.STORE_EVERY_S", 0.0)
    c = desk.store.create()
    desk.engine.hold_after = 2
    database = desk.store._database.db
    database.execute(
        "CREATE TRIGGER t BEFORE UPDATE OF text ON messages BEGIN SELECT RAISE(FAIL, 'a fault of a test'); END"
    )
    desk.turns.ask(c.id, "Which colour?")
    assert isinstance(desk.end_of_turn(), TurnError)
    assert desk.engine.cancelled.wait(WAIT_S)


def test_a_question_stopped_before_its_answer_is_left_out_and_can_be_asked_again(desk: Desk) -> None:
    c = desk.store.create()
    desk.turns.ask(c.id, "Which colour?")
    desk.end_of_turn()
    answered = history(desk.store.messages(c.id))
    desk.engine.hold_after = 0
    turn = desk.turns.ask(c.id, "Is that so?")
    desk.until(TurnStarted)
    desk.turns.cancel(turn)
    assert desk.end_of_turn().message.state == "cancelled"
    assert desk.store.computed(c.id)[1] == len(answered) - 1, "stopped before anything was computed"
    desk.store.set_computed(c.id, desk.store.computed(c.id)[0], len(answered) + 3)  # part of the question was read
    desk.engine.hold_after = None
    desk.turns.regenerate(c.id)
    desk.end_of_turn()
    again = desk.engine.submitted[-1]
    assert again.history_tokens == len(answered) + 3
    assert again.tokens.ids == desk.engine.submitted[-2].tokens.ids


def test_the_next_question_does_not_see_an_unanswered_one(desk: Desk) -> None:
    c = desk.store.create()
    desk.turns.ask(c.id, "Which colour?")
    desk.end_of_turn()
    answered = history(desk.store.messages(c.id))
    unanswered = desk.store.append(c.id, "user", "Is that so?", Tokens.prompt(desk.text_ids("Is that so?")))
    desk.store.append(c.id, "assistant", "", Tokens(), "partial")
    desk.store.set_computed(c.id, desk.store.computed(c.id)[0], len(answered) + 3)
    desk.turns.ask(c.id, "Sure?")
    desk.end_of_turn()
    submit = desk.engine.submitted[-1]
    stored = desk.store.messages(c.id)
    assert submit.tokens == answered + stored[-2].tokens
    assert submit.history_tokens == len(answered)
    assert stored[2].id == unanswered.id, "it stays visible"
    report = stored[-1].report
    assert report is not None
    assert desk.store.computed(c.id)[1] == report.tokens.prompt + report.tokens.generated - 1


def stop_while_reading(desk: Desk, c: Conversation, question: str, read: int) -> Tokens:
    """Asks and stops before the first token, when so much of the prompt was read; returns the prompt."""
    desk.engine.hold_after, desk.engine.read_before_hold = 0, read
    turn = desk.turns.ask(c.id, question)
    desk.until(TurnStarted)
    desk.turns.cancel(turn)
    assert desk.end_of_turn().message.state == "cancelled"
    desk.engine.hold_after = None
    return desk.engine.submitted[-1].tokens


def test_a_document_keeps_its_place_and_numbers_behind_a_question_stopped_while_it_was_read(
    desk: Desk, tmp_path: Path
) -> None:
    one, two = (int(desk.library.add(path).id) for path in (sample_pdf(), write_pdf(tmp_path / "b.pdf", [["Blue."]])))
    c = desk.store.create(documents=[one])
    stopped = stop_while_reading(desk, c, "Which colour?", read=600)
    desk.turns.ask(c.id, "Is it blue?")
    desk.end_of_turn()
    asked = desk.engine.submitted[-1]
    shared = desk.store.messages(c.id)[2].placement.shared_tokens
    assert shared > 1000
    assert asked.tokens.ids[:shared] == stopped.ids[:shared], "what was read of it is found"
    assert asked.history_tokens == 600, "and what is not found of it has a reason"
    assert Context.of(desk.store.messages(c.id)[2:], frozenset()).markers == passage_numbers(desk, one, first=1)
    # The same of one that is attached later.
    desk.store.attach(c.id, two)
    answered = len(history(desk.store.messages(c.id)[2:]))
    stopped = stop_while_reading(desk, c, "And there?", read=20)
    desk.turns.ask(c.id, "What is there?")
    desk.end_of_turn()
    head = answered + desk.store.messages(c.id)[-2].placement.head_tokens
    assert desk.engine.submitted[-1].tokens.ids[:head] == stopped.ids[:head]
    assert [m.text for m in desk.store.messages(c.id)][::2] == ["Which colour?", "Is it blue?", "And there?",
                                                                "What is there?"]  # fmt: skip


def passage_numbers(desk: Desk, document: int, first: int) -> dict[int, int]:
    return {passage: number for number, passage in enumerate(desk.texts.passage_ids(document), first)}


def test_an_empty_answer_is_told(desk: Desk) -> None:
    c = desk.store.create()
    desk.engine.answer = [desk.end]
    desk.turns.ask(c.id, "Which colour?")
    report = desk.end_of_turn().message.report
    assert report.finish_reason == "empty"


def test_the_catalogue_answers_without_the_model_and_outside_every_prompt(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)])
    desk.turns.ask(c.id, "How many pages does it have?")
    done = desk.end_of_turn()
    assert document.name in done.message.text
    assert "10 pages" in done.message.text
    assert done.message.report.mode == "catalogue"
    assert desk.engine.submitted == []
    desk.turns.ask(c.id, "Which colour is it?")
    desk.end_of_turn()
    question = desk.store.messages(c.id)[2]
    assert desk.engine.submitted[0].tokens == question.tokens, "as if it were the first question"


def test_answering_a_catalogue_question_again_asks_the_model(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)])
    desk.turns.ask(c.id, "Which chapters are there?")
    desk.end_of_turn()
    desk.turns.regenerate(c.id)
    done = desk.end_of_turn()
    assert done.message.text == "It is blue."
    assert [m.text for m in desk.store.messages(c.id)] == ["Which chapters are there?", "It is blue."]


def test_what_was_looked_up_is_stored_with_the_question(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)], mode="passages")
    desk.turns.ask(c.id, "How long is a deleted conversation kept?")
    desk.end_of_turn()
    lookup = desk.store.messages(c.id)[0].lookup
    assert lookup is not None
    assert lookup.query == "How long is a deleted conversation kept?"
    assert any(p.use == "new" and p.score > 0 for p in lookup.passages)
    copy = desk.store.fork(c.id)
    assert desk.store.messages(copy.id)[0].lookup == lookup


def test_an_answer_that_found_nothing_tells_how_much_was_read(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)], mode="passages")
    desk.engine.answer = [*desk.text_ids("The passages do not mention it."), desk.end]
    desk.turns.ask(c.id, "Which birds live in the library garden?")
    report = desk.end_of_turn().message.report
    read = {page for use in report.pages_in_context for page in use.pages}
    assert report.coverage == f"Not found in the {len(read)} of 10 pages read."
    assert report.unread == 10 - len(read)
    (listed,) = report.read
    assert set(listed.pages) == read
    assert listed.document == document.name
    assert desk.store.messages(c.id)[-1].report.read == (listed,), "it is stored"


def test_an_answer_that_was_given_to_another_question_is_told(desk: Desk) -> None:
    c = desk.store.create()
    told = []
    for question, answer in (
        ("Which sound?", "Purple elephants sing at night."),
        ("Which colour?", "Purple  elephants sing at night."),
        ("Which colour?", "Purple elephants dance."),
        ("Which time?", "It is so."),
        ("Which place?", "It is so."),
    ):
        desk.engine.answer = [*desk.text_ids(answer), desk.end]
        desk.turns.ask(c.id, question)
        told.append(desk.end_of_turn().message.report.repeats)
    assert told == [False, True, False, False, False]
    assert desk.store.messages(c.id)[3].report.repeats, "it is stored"
    desk.engine.answer = [*desk.text_ids("Purple elephants dance."), desk.end]
    desk.turns.regenerate(c.id)
    desk.end_of_turn()


def test_the_pages_are_quoted_where_they_do_not_bear_the_answer_out(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)], mode="passages")
    question = "How long is a deleted conversation kept in the trash?"
    desk.engine.answer = [*desk.text_ids("Purple elephants sing."), desk.end]
    desk.turns.ask(c.id, question)
    first, *_ = quoted = desk.end_of_turn().message.report.pages_say
    assert desk.store.messages(c.id)[-1].report.pages_say == quoted, "they are stored"
    assert {"deleted", "conversation", "trash"} <= set(re.findall(r"\w+", first.quote.lower()))
    assert (first.verified, first.answer_count) == ("exact", 0)
    assert figures([Answered(question, "", (), quoted)], lambda _: document.path).wrong == ()
    desk.engine.answer = [*desk.text_ids(first.quote), desk.end]
    desk.turns.ask(c.id, question)
    answer = desk.end_of_turn().message
    assert answer.citations
    assert answer.report.pages_say == (), "the answer says it"
    desk.engine.answer, desk.engine.hold_after = desk.text_ids("Purple elephants sing."), 2
    turn = desk.turns.ask(c.id, question)
    desk.until(TurnText)
    desk.turns.cancel(turn)
    assert desk.end_of_turn().message.report.pages_say == (), "no more is said of a stopped answer"


def test_a_scope_in_which_nothing_is_found_gives_its_beginning(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)], mode="passages")
    desk.store.set_scope(c.id, Scope("pages 4–6", int(document.id), 3, 5))
    desk.turns.ask(c.id, "Xylophones?")
    report = desk.end_of_turn().message.report
    lookup = desk.store.messages(c.id)[0].lookup
    assert lookup.fell_back
    assert all(found.why == "beginning" and 3 <= found.page_index <= 5 for found in lookup.passages)
    assert lookup.passages[0].page_index == 3
    assert lookup.passages[0].use == "new"
    assert report.coverage.startswith("Nothing in pages 4–6 was found")
    assert report.pages_in_context


def test_a_question_about_all_of_it_tells_that_only_a_part_was_read(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)], mode="passages")
    desk.turns.ask(c.id, "List all fees of the library.")
    report = desk.end_of_turn().message.report
    assert report.coverage.startswith("This answer rests on ")
    assert report.unread > 0
    desk.turns.ask(c.id, "How long is a deleted conversation kept?")
    assert desk.end_of_turn().message.report.coverage == ""


def test_an_answer_without_any_passage_says_so(desk: Desk) -> None:
    document = desk.library.add(sample_pdf())
    c = desk.store.create(documents=[int(document.id)], mode="passages")
    desk.turns.ask(c.id, "Xylophones?")
    assert desk.end_of_turn().message.report.coverage.startswith("No passage was found")


def test_where_nothing_can_be_read_no_model_is_asked(desk: Desk, tmp_path: Path) -> None:
    scan = write_pdf(tmp_path / "scan.pdf", [[PICTURE]] * 4)
    document = int(desk.library.add(scan).id)
    conversation = desk.store.create(documents=[document])
    for survey in (False, True):
        desk.turns.ask(conversation.id, "What does it say?", survey=survey)
        ended = desk.end_of_turn()
        assert isinstance(ended, TurnError)
        assert isinstance(ended.error, NothingReadable)
        assert ended.error.what == "None of the 4 pages of scan.pdf can be read."
        assert ended.error.documents == (document,)
        assert "pagekeep index ocr 'scan.pdf'" in ended.error.next
    assert desk.engine.submitted == []
    assert desk.store.messages(conversation.id) == ()


def test_a_named_page_that_cannot_be_read_is_told_with_the_ways_on(desk: Desk, tmp_path: Path) -> None:
    mixed = write_pdf(tmp_path / "mixed.pdf", [["The tower stands at the harbour."], [PICTURE]])
    conversation = desk.store.create(documents=[int(desk.library.add(mixed).id)])
    desk.turns.ask(conversation.id, "What is said on page 2?")
    error = desk.end_of_turn().error
    assert error.what == "Nothing on page 2 of mixed.pdf can be read."
    assert error.next.endswith("pagekeep index ocr 'mixed.pdf'; or ask without naming the page")
    desk.turns.ask(conversation.id, "What is said about the tower?")
    assert isinstance(desk.end_of_turn(), TurnDone)


def test_pages_that_cannot_be_read_are_told_with_the_answer(desk: Desk, tmp_path: Path) -> None:
    mixed = write_pdf(tmp_path / "mixed.pdf", [["The lock is blue. It was painted in May."], [PICTURE], [PICTURE]])
    conversation = desk.store.create(documents=[int(desk.library.add(mixed).id)])
    desk.turns.ask(conversation.id, "Which colour has the lock?")
    report = desk.end_of_turn().message.report
    (use,) = report.pages_in_context
    assert (use.pages, use.whole, use.unreadable) == ((0,), True, 2)
    assert report.coverage.startswith("2 of 3 pages could not be read")
    assert ("Documents", "1 of 3 pages read whole, 2 unreadable") in lines(report)
    assert TurnReport.from_json(report.to_json()) == report
    other = desk.store.create(documents=[int(desk.library.add(sample_pdf()).id), *conversation.document_ids])
    desk.store.set_mode(other.id, "passages")
    desk.turns.ask(other.id, "Summarise the rules about the trash.")
    told = desk.end_of_turn().message.report.coverage
    assert told.startswith("This answer rests on ")
    assert "2 of 13 pages could not be read" in told


def test_who_wrote_it_is_asked_of_the_first_page_and_of_the_file(desk: Desk) -> None:
    conversation = desk.store.create(documents=[int(desk.library.add(sample_pdf()).id)])
    desk.store.set_mode(conversation.id, "passages")
    desk.turns.ask(conversation.id, "Who wrote it?")
    desk.end_of_turn()
    asked, answer = desk.store.messages(conversation.id)
    first = asked.lookup.passages[0]
    assert (first.why, first.page_index, first.use) == ("opening", 0, "new")
    assert answer.report.coverage.startswith(
        "The file says of itself: title “The Reading Desk Agreement”, author “Page"
    )
