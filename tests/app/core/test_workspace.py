"""The whole core with the starter model: engine, store, library and conversations are the real ones."""

import queue
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.core.errors import UserError
from app.core.events import FetchFailed, ImportCancelled, ImportDone, ImportFailed, TurnDone, TurnError, TurnText
from app.core.paths import Paths
from app.core.settings import Settings, load_settings
from app.core.workspace import Workspace
from engine.messages import ComputedRange, EngineSettings, ModelFailed, ModelLoaded, Sampling, StateReport
from tests.rag import pdf_files

pytestmark = [pytest.mark.model, pytest.mark.slow]
WAIT_S = 240.0
QUICK = Settings(
    sampling=Sampling(temperature=0.0, max_tokens=8), engine=EngineSettings(context=2048), fetch_embedder=False
)


class Desk:
    """A workspace whose events are waited for."""

    def __init__(self, home: Path, settings: Settings = QUICK, read_ahead: bool = False) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.home = home
        self.workspace = Workspace(Paths.below(home), self.events.put, settings, read_ahead=read_ahead)

    def until(self, *kinds: type) -> Any:
        while True:
            event = self.events.get(timeout=WAIT_S)
            if isinstance(event, kinds):
                return event

    def load(self, model: Path) -> None:
        self.workspace.load_model(model)
        event = self.until(ModelLoaded, ModelFailed)
        assert isinstance(event, ModelLoaded), event

    def book(self, pages: int, seed: int = 1) -> int:
        path = pdf_files.write_pdf(self.home / f"book{seed}.pdf", pdf_files.book(pages, seed))
        self.workspace.documents.add(path)
        done = self.until(ImportDone, ImportFailed)
        assert isinstance(done, ImportDone), done
        return int(done.document.id)

    def answer(self, conversation: Any, text: str) -> Any:
        self.workspace.ask(conversation, text)
        return self.ended()

    def ended(self) -> Any:
        event = self.until(TurnDone, TurnError)
        assert isinstance(event, TurnDone), event
        return event.message


@pytest.fixture
def desk(tmp_path: Path, starter_model: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    made.load(starter_model)
    yield made
    made.workspace.close()


def test_the_price_is_what_the_turn_costs(desk: Desk) -> None:
    c = desk.workspace.chats.new(documents=(desk.book(2),))
    for question in ("Which word is on page two?", "And on the first page?"):
        price = desk.workspace.price(c.id, question)
        report = desk.answer(c.id, question).report
        assert price.total == report.tokens.prompt
        assert price.new_tokens == sum(part.tokens for part in report.tokens.computed)
        assert price.reused_tokens == report.tokens.reused.total
        assert not price.overflow
    assert price.new_tokens < 40 < price.reused_tokens
    assert price.seconds is not None


def test_two_conversations_on_one_document_share_its_pages(desk: Desk) -> None:
    document = desk.book(3)
    first, second = (desk.workspace.chats.new(documents=(document,)) for _ in range(2))
    desk.answer(first.id, "Which word is on page two?")
    report = desk.answer(second.id, "Tell me about the harbour.").report
    shared = desk.workspace.conversations.messages(second.id)[0].placement.shared_tokens
    assert shared > 400
    assert report.tokens.reused.of_which_shared == shared, "header and document to the last token"
    assert report.tokens.reused.memory >= shared


def test_regenerating_reads_nothing_again(desk: Desk) -> None:
    c = desk.workspace.chats.new(documents=(desk.book(2),))
    first = desk.answer(c.id, "Which word is on page two?")
    desk.workspace.regenerate(c.id)
    second = desk.ended()
    assert second.text == first.text, "the likeliest words are the likeliest again"
    assert sum(part.tokens for part in second.report.tokens.computed) <= 1, "the vector kept"


def test_a_fork_goes_on_without_reading(desk: Desk) -> None:
    c = desk.workspace.chats.new(documents=(desk.book(2),))
    desk.answer(c.id, "Which word is on page two?")
    copy = desk.workspace.chats.fork(c.id)
    report = desk.answer(copy.id, "And on the first page?").report
    reasons = [part.reason for part in report.tokens.computed]
    assert reasons == ["last sampled", "new"]
    assert report.tokens.computed[0] == ComputedRange(1, "last sampled")


def test_two_answers_at_once_are_the_same_as_one_after_the_other(desk: Desk) -> None:
    documents = desk.book(1, seed=1), desk.book(1, seed=2)
    alone = [desk.workspace.chats.new(documents=(d,)) for d in documents]
    texts = [desk.answer(c.id, "Name a word.").text for c in alone]
    together = [desk.workspace.chats.new(documents=(d,)) for d in documents]
    turns = [desk.workspace.ask(c.id, "Name a word.") for c in together]
    assert set(desk.workspace.running().values()) == set(turns)
    messages = {m.conversation: m.text for m in (desk.ended(), desk.ended())}
    assert [messages[c.id] for c in together] == texts


def test_after_a_restart_the_conversation_goes_on_from_disk(desk: Desk, starter_model: Path) -> None:
    c = desk.workspace.chats.new(documents=(desk.book(2),))
    desk.answer(c.id, "Which word is on page two?")
    before = desk.workspace.conversations.messages(c.id)
    desk.workspace.close()
    again = Desk(desk.home)
    try:
        again.load(starter_model)
        assert again.workspace.conversations.messages(c.id) == before
        again.workspace.states.request(c.id)
        state = again.until(StateReport)
        assert state.tier == "disk"
        report = again.answer(c.id, "And on the first page?").report
        assert report.tokens.reused.memory == 0
        assert [part.reason for part in report.tokens.computed] == ["last sampled", "new"]
    finally:
        again.workspace.close()


def test_quitting_in_the_middle_of_an_answer_keeps_it(desk: Desk, starter_model: Path) -> None:
    desk.workspace._stored_settings.current = replace(QUICK, sampling=Sampling(temperature=0.0, max_tokens=300))
    c = desk.workspace.chats.new(documents=(desk.book(1),))
    desk.workspace.ask(c.id, "Tell a long story about the harbour, the lantern and the orchard.")
    desk.until(TurnText)
    desk.workspace.close()
    again = Desk(desk.home)
    try:
        again.load(starter_model)
        kept = again.workspace.conversations.messages(c.id)[-1]
        assert kept.state == "cancelled"
        assert kept.text
        again.workspace.continue_answer(c.id)
        done = again.ended()
        assert done.text.startswith(kept.text)
        assert done.tokens.ids[: len(kept.tokens)] == kept.tokens.ids
        assert [part.reason for part in done.report.tokens.computed] == ["last sampled"]
    finally:
        again.workspace.close()


def test_the_model_is_remembered(desk: Desk, starter_model: Path) -> None:
    desk.workspace.close()
    assert load_settings(Paths.below(desk.home).settings)[0].model == starter_model
    again = Desk(desk.home)
    assert again.workspace.models.chosen is None, "explicit settings of this process win"
    again.workspace.close()


def test_overflow_is_priced_and_refused(desk: Desk) -> None:
    c = desk.workspace.chats.new(documents=(desk.book(16),))
    desk.workspace.chats.set_mode(c.id, "whole")
    price = desk.workspace.price(c.id, "Which word is on page two?")
    assert price.overflow
    assert price.reserve == min(64, desk.workspace.settings.sampling.max_tokens)
    assert price.over_by == price.total + price.reserve - 2048
    assert "book1.pdf" in price.what_would_drop
    desk.workspace.ask(c.id, "Which word is on page two?")
    event = desk.until(TurnError, TurnDone)
    assert isinstance(event, TurnError)
    assert f"{price.over_by:,} tokens" in event.error.what
    assert desk.workspace.conversations.messages(c.id) == ()


def test_wrong_documents_change_nothing(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "letter.pdf").write_bytes(b"Dear Sir,")
    desk.workspace.documents.add(tmp_path / "letter.pdf")
    event = desk.until(ImportFailed, ImportDone)
    assert isinstance(event, ImportFailed)
    assert "letter.pdf" in event.error.what
    assert desk.workspace.library.documents(include_trashed=True) == []


def test_a_wrong_model_leaves_the_loaded_one(desk: Desk, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"GGUF" + b"\0" * 100)
    desk.workspace.load_model(wrong)
    assert isinstance(desk.until(ModelLoaded, ModelFailed), ModelFailed)
    c = desk.workspace.chats.new()
    assert desk.answer(c.id, "Hello").text
    assert load_settings(Paths.below(desk.home).settings)[0].model != wrong


def test_an_import_can_be_stopped(desk: Desk, tmp_path: Path) -> None:
    path = pdf_files.write_pdf(tmp_path / "long.pdf", pdf_files.book(400))
    job = desk.workspace.documents.add(path)
    desk.workspace.documents.cancel(job)
    event = desk.until(ImportCancelled, ImportDone, ImportFailed)
    assert isinstance(event, ImportCancelled)


def test_fetching_what_is_no_model_fails_kindly(desk: Desk) -> None:
    desk.workspace.fetches.submit("not a name")
    event = desk.until(FetchFailed)
    assert "names no model file" in event.error.what


def test_without_a_model_a_question_is_refused_at_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "empty")
    c = desk.workspace.chats.new()
    with pytest.raises(UserError, match="No model"):
        desk.workspace.ask(c.id, "Hello")
    with pytest.raises(UserError, match="No model"):
        desk.workspace.load_model()
    desk.workspace.close()


class Fatal(BaseException):
    """More than the engine survives."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_the_engine_leaves_nobody_waiting(
    tmp_path: Path, starter_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise Fatal("a fault of ours")

    monkeypatch.setattr("engine.service.load", broken)
    desk = Desk(tmp_path / "faulty")
    desk.workspace.load_model(starter_model)
    event = desk.until(ModelLoaded, ModelFailed)
    assert "stopped" in event.what
    with pytest.raises(UserError, match="stopped"):
        desk.workspace.ask(desk.workspace.chats.new().id, "Hello")
    desk.workspace.close()


def test_a_fault_while_loading_is_told_and_the_next_load_works(
    tmp_path: Path, starter_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("a fault of ours")

    desk = Desk(tmp_path / "faulty")
    with monkeypatch.context() as patched:
        patched.setattr("engine.service.load", broken)
        desk.workspace.load_model(starter_model)
        event = desk.until(ModelLoaded, ModelFailed)
    assert "a fault of ours" in event.why
    desk.workspace.load_model(starter_model)
    assert isinstance(desk.until(ModelLoaded, ModelFailed), ModelLoaded)
    desk.workspace.close()
