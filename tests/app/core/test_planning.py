"""What goes along with a question: real library, real tokenizer, a context of chosen size."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date as Date
from pathlib import Path

import pytest

from app.core.advice import check_fits, what_would_drop
from app.core.conversations import ConversationStore
from app.core.errors import DoesNotFit, UserError
from app.core.lookups import Scope
from app.core.planning import Planner
from app.core.plans import Situation
from app.core.prompt import history, recompose
from app.core.records import Mode
from app.core.segments import PromptFormat
from app.core.settings import Settings
from app.core.survey_plan import PART_TOKENS
from assets import sample_pdf
from engine.messages import ModelLoaded, Sampling, Tokens
from rag import Library
from rag.types import DocumentId
from tests.rag.pdf_files import write_pdf

pytestmark = pytest.mark.model
TRASH = "How long is a deleted conversation kept in the trash?"


@dataclass(frozen=True)
class Model:
    chat: PromptFormat
    context: int


@dataclass
class Desk:
    """A conversation over the sample document, and a planner."""

    store: ConversationStore
    library: Library
    chat: PromptFormat
    end_ids: frozenset[int]
    decode: Callable[..., str] = str
    settings: Settings = field(default_factory=Settings)
    today: Date = Date(2031, 2, 3)

    def __post_init__(self) -> None:
        self.document = int(self.library.add(sample_pdf()).id)
        self.conversation = self.store.create(documents=(self.document,)).id
        self.planner = Planner(
            lambda: self.library,
            self.library.search,
            lambda: self.settings,
            lambda: self.store.dates,
            lambda: self.today,
        )

    def plan(self, question: str, context: int, mode: Mode = "auto", look_up: bool = True):
        conversation = self.store.set_mode(self.conversation, mode)
        messages = self.store.messages(self.conversation)
        situation = Situation(conversation, messages, Model(self.chat, context), self.end_ids)
        return self.planner.plan(situation, question, look_up)

    def keep(self, plan) -> None:
        composed = plan.composed
        question = plan.addition.question
        user = (self.conversation, "user", question, composed.tokens)
        self.store.append(*user, placement=composed.placement, lookup=plan.lookup)

    def chat_text(self, plan) -> str:
        return self.decode(plan.composed.tokens.ids)


@pytest.fixture
def desk(store: ConversationStore, tmp_path: Path, chat) -> Iterator[Desk]:
    library = Library(tmp_path / "library")
    yield Desk(store, library, chat.format, chat.end_ids, chat.decode)
    library.close()


def test_auto_reads_whole_what_fits_and_looks_up_what_does_not(desk: Desk) -> None:
    whole = desk.plan(TRASH, context=8192)
    assert whole.mode == "whole"
    assert len(whole.tokens) == whole.total < 8192
    room = whole.total + min(desk.settings.answer_reserve, whole.total)
    assert desk.plan(TRASH, context=room + 400).mode == "whole"
    small = desk.plan(TRASH, context=whole.total)
    assert small.mode == "passages"
    check_fits(small)


def test_passages_hold_the_answer_and_keep_the_budget(desk: Desk) -> None:
    desk.settings = replace(desk.settings, passage_tokens=300)
    plan = desk.plan(TRASH, context=2048, mode="passages")
    assert any("trash for 30" in p.text for p in plan.addition.passages)
    bare = desk.plan(TRASH, context=2048, mode="passages", look_up=False)
    added = len(plan.composed.tokens) - len(bare.composed.tokens)
    assert 0 < added <= 300
    assert bare.estimated == 300, "a price counts the bound"


def test_the_second_question_does_not_repeat_passages(desk: Desk) -> None:
    first = desk.plan(TRASH, context=2048, mode="passages")
    desk.keep(first)
    again = desk.plan(TRASH, context=2048, mode="passages")
    assert set(first.addition.passages) & set(again.addition.passages)
    known = {p.id for item in first.composed.placement.passages for p in desk.planner.texts.placed(item)}
    assert not {i for item in again.composed.placement.passages for i in item.passage_ids} & known
    assert again.history.ids == first.tokens.ids


def test_a_document_that_is_in_the_context_whole_is_not_looked_up(desk: Desk) -> None:
    desk.keep(desk.plan(TRASH, context=8192))
    second = desk.plan("And a deleted document?", context=8192, mode="passages")
    assert second.mode == "whole"
    assert second.addition.passages == ()
    assert len(second.composed.tokens) < 40


def test_overflow_is_told_before_anything_is_sent(desk: Desk) -> None:
    plan = desk.plan(TRASH, context=1024, mode="whole")
    assert plan.over_by == plan.total + 64 - 1024
    with pytest.raises(UserError, match=f"{plan.over_by:,} tokens") as caught:
        check_fits(plan)
    assert "pagekeep-sample.pdf" in what_would_drop(plan)
    assert "passages" in caught.value.next.lower()


def test_no_more_is_kept_for_an_answer_than_it_may_have(desk: Desk) -> None:
    desk.settings = replace(desk.settings, sampling=Sampling(max_tokens=10))
    plan = desk.plan(TRASH, context=1024, mode="whole")
    assert plan.over_by == plan.total + 10 - 1024


def test_a_larger_memory_budget_is_advised_only_where_the_model_has_room(desk: Desk) -> None:
    plan = desk.plan(TRASH, context=1024, mode="whole")
    needed = plan.total + 64
    info = ModelLoaded(Path("m"), "M", "llama", 1024, (), 0, 1000, 64, "f", 0.0, bounding_bytes=1_024_000)
    with pytest.raises(DoesNotFit, match="MB of memory") as caught:
        check_fits(plan, loaded=replace(info, model_context=needed))
    assert "Raise the memory budget" in caught.value.next
    assert caught.value.by_memory
    with pytest.raises(DoesNotFit, match="model's context") as caught:
        check_fits(plan, loaded=replace(info, model_context=needed - 1))
    assert "memory" not in caught.value.next
    assert not caught.value.by_memory


def test_a_conversation_that_is_full_says_so(desk: Desk) -> None:
    first = desk.plan(TRASH, context=8192)
    desk.keep(first)
    messages = desk.store.messages(desk.conversation)
    full = desk.plan("And then?", context=len(history(messages)) + 20)
    with pytest.raises(UserError, match="context") as caught:
        check_fits(full)
    assert "new conversation" in caught.value.next


def test_a_trashed_document_is_not_placed(desk: Desk) -> None:
    from rag.types import DocumentId

    desk.library.trash(DocumentId(desk.document))
    assert desk.plan(TRASH, context=8192).mode == "none"


def test_the_automatic_budget_holds_the_two_best_passages_where_there_is_room(desk: Desk) -> None:
    hits = desk.library.search(TRASH, [DocumentId(desk.document)], desk.settings.passages)
    plan = desk.plan(TRASH, context=3000, mode="passages")
    best = {hit.passage.id for hit in hits[:2]}
    assert best <= {passage.id for passage in plan.addition.passages}
    sizes = [len(desk.chat.text_ids(hit.text)) for hit in hits[:2]]
    assert sum(sizes) > 3000 // 20, "the share alone would hold fewer"
    priced = desk.plan(TRASH, context=3000, mode="passages", look_up=False)
    assert priced.total >= plan.total, "a price counts the bound"


def test_a_scope_that_the_reader_set_is_placed_as_it_stands(desk: Desk) -> None:
    scope = Scope("page 3", desk.document, 2, 2)
    desk.store.set_scope(desk.conversation, scope)
    plan = desk.plan("What is this?", context=8192)
    inside = [p for p in desk.library.passages(DocumentId(desk.document)) if 2 in {r.page_index for r in p.ranges}]
    assert list(plan.addition.passages) == inside
    assert plan.lookup is not None
    assert {p.use for p in plan.lookup.passages} == {"new"}
    searched = desk.plan(TRASH, context=8192, mode="passages")
    assert searched.lookup is not None
    assert searched.lookup.scope == "page 3"
    assert all(2 in {r.page_index for r in p.ranges} for p in searched.addition.passages)


def test_a_follow_up_is_searched_with_the_words_of_the_question_before(desk: Desk) -> None:
    desk.keep(desk.plan(TRASH, context=8192, mode="passages"))
    plan = desk.plan("and why?", context=8192, mode="passages")
    assert plan.lookup is not None
    assert plan.lookup.query.startswith("and why? ")
    assert "trash" in plan.lookup.query
    known = [p for p in plan.lookup.passages if p.use == "known"]
    assert known, "passages of the first question are referred to, not repeated"
    assert all(p.marker > 0 for p in known)
    text = desk.chat_text(plan)
    assert not any(p.text[:60] in text for p in known)


def test_the_look_up_tells_what_had_no_room(desk: Desk) -> None:
    desk.settings = replace(desk.settings, passage_tokens=300)
    plan = desk.plan(TRASH, context=8192, mode="passages")
    assert plan.lookup is not None
    uses = [p.use for p in plan.lookup.passages]
    assert "new" in uses
    assert "no room" in uses
    placed = {p.passage_id for p in plan.lookup.passages if p.use == "new"}
    assert placed == {p.id for p in plan.addition.passages}


def test_pages_named_in_the_question_are_where_it_looks(desk: Desk) -> None:
    plan = desk.plan("What does page 3 say about pages?", context=1500)
    assert plan.lookup is not None
    assert plan.lookup.from_words
    page = desk.planner.scopes.labels(desk.document).index("3")
    assert all(page in {r.page_index for r in p.ranges} for p in plan.addition.passages)


def test_a_comparison_is_priced_as_its_two_sides(desk: Desk, tmp_path: Path) -> None:
    lines = [f"Rule {n}: what is borrowed comes back on day {n}, paid or not." for n in range(40)]
    long = desk.library.add(write_pdf(tmp_path / "long.pdf", [lines] * 8))
    desk.conversation = desk.store.create(documents=(int(long.id),)).id
    whole = desk.plan("List all rules", 2048, "survey").elsewhere
    assert whole > 2 * PART_TOKENS
    assert desk.plan("Compare rules with payments", 2048, "survey").elsewhere == 2 * PART_TOKENS
    assert desk.plan("Compare all of it with the other parts", 2048, "survey").elsewhere == whole
    assert desk.plan("How do rules compare to payments, and what changed?", 2048, "survey").elsewhere == whole


def test_the_nearest_sentences_are_told_to_a_small_model_only_and_only_where_there_is_room(desk: Desk) -> None:
    large = desk.plan(TRASH, context=3000, mode="passages")
    assert large.addition.nearest == ""
    desk.chat = PromptFormat(desk.chat.glue, desk.chat._encoder, small=True)
    told = desk.plan(TRASH, context=3000, mode="passages")
    assert f"{told.addition.nearest}\n\n{TRASH}" in desk.chat_text(told)
    assert "30 days" in told.addition.nearest
    desk.settings = replace(desk.settings, answer_reserve=1)
    tight = desk.plan(TRASH, context=len(told.tokens), mode="passages")  # a token less than it takes
    assert tight.addition.passages == told.addition.passages
    assert tight.addition.nearest == ""
    assert len(tight.tokens) < len(told.tokens)


def test_the_nearest_sentences_of_a_follow_up_are_about_what_it_was_looked_up_by(desk: Desk) -> None:
    desk.chat = PromptFormat(desk.chat.glue, desk.chat._encoder, small=True)
    end = desk.chat.glue.end_of_turn
    for question in (TRASH, "What about the second one?"):
        plan = desk.plan(question, context=4000, mode="passages")
        desk.keep(plan)
        answer = Tokens.generated([*desk.chat.text_ids("So it is."), end])
        desk.store.append(desk.conversation, "assistant", "So it is.", answer)
        assert "30 days" in plan.addition.nearest
    assert any(found.use == "known" for found in plan.lookup.passages)
    again = recompose(desk.chat, desk.store.messages(desk.conversation), desk.planner.texts.placed, {}, end)
    assert f"{plan.addition.nearest}\n\n{question}" in desk.decode(again[2][1].tokens.ids)


def test_a_part_that_is_placed_as_it_stands_has_no_nearest_sentences(desk: Desk) -> None:
    desk.chat = PromptFormat(desk.chat.glue, desk.chat._encoder, small=True)
    desk.store.set_scope(desk.conversation, Scope("pages 1-2", desk.document, 0, 1))
    plan = desk.plan(TRASH, context=8000)
    assert {passage.why for passage in plan.lookup.passages} == {"scope"}
    assert plan.addition.nearest == ""


def test_what_a_document_is_about_is_looked_for_where_it_begins_and_not_in_its_contents(
    desk: Desk, tmp_path: Path
) -> None:
    listed = [f"{n}.{m} Rule of part {n} {'. ' * 30} {n + m}" for n in range(6) for m in range(6)]
    title, told = ["Handbook of the Lantern Club"], ["Lanterns are lent to members. The club was founded by sailors."]
    rules = [[f"Rule {n} of this document is about lamps: what is borrowed comes back."] * 12 for n in range(8)]
    book = desk.library.add(write_pdf(tmp_path / "club.pdf", [title, listed, told, *rules]))
    desk.conversation = desk.store.create(documents=(int(book.id),)).id
    assert desk.library.listing_pages(book.id) == {1}

    def first_pages(question: str) -> list[int]:
        found = desk.plan(question, 3000, "passages").lookup.passages
        return [passage.page_index for passage in found if passage.why == "opening"]

    assert first_pages("What is this document about?") == [0, 2]
    assert first_pages("What is rule 3 about?") == []
