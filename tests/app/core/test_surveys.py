"""Surveys: every part is read, notes are kept, a stop or an end of the process loses none.

Over 300 lines: every way a survey can stop, go on and end, over one scripted engine.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.core import survey_start
from app.core.conversations import ConversationStore
from app.core.errors import UserError
from app.core.events import TurnDone, TurnError, TurnPhase, TurnStarted, TurnText
from app.core.lookups import Scope
from app.core.survey_plan import SurveyPlan, survey_plan
from app.core.survey_text import CHOSEN, NOT_TOGETHER, models_words
from app.core.surveys import Survey
from assets import sample_pdf
from engine.messages import DropState
from rag.types import DocumentId
from tests.app.core.test_turns import Desk
from tests.rag.pdf_files import write_pdf

pytestmark = pytest.mark.model
QUESTION = "What do the rules say about time?"
LIST = "List all rules about time."
COUNT = "How many rules about time are there?"
PUT_TOGETHER = "All rules were put together."
SMALL = 1024  # tokens of context, so that the sample document has several parts


@pytest.fixture
def desk(tmp_path: Path, chat: Any) -> Iterator[Desk]:
    made = Desk(tmp_path, chat, context=SMALL)
    made.document = int(made.library.add(sample_pdf()).id)
    made.engine.answer = lambda turn: [*made.text_ids(quoting(made.engine.decode(turn.tokens.ids))), made.end]
    yield made
    made.close()


def quoting(prompt: str) -> str:
    """What a model says that copies: the first words of the last passage, or that all of it was put together."""
    marks = list(re.finditer(r"\[(\d+)\] ", prompt))
    if "notes on the parts" in prompt:
        return f"{PUT_TOGETHER} Guests may stay."
    passage = prompt[marks[-1].end() :].split("\n\nAnswer from")[0]
    return f"{' '.join(passage.split()[:14])} [{marks[-1][1]}]."


def begin(desk: Desk, question: str = QUESTION, **changes: Any) -> Any:
    conversation = desk.store.create(documents=[desk.document])
    if changes:
        desk.store.set_scope(conversation.id, Scope(**changes))
    desk.turns.ask(conversation.id, question, survey=True)
    return conversation.id


def compare(desk: Desk, question: str) -> Any:
    conversation = desk.store.create(documents=[desk.document])
    desk.store.set_mode(conversation.id, "survey")
    desk.turns.ask(conversation.id, question)
    return desk.end_of_turn().message


def test_every_passage_is_read_once_within_the_budget(desk: Desk) -> None:
    conversation = begin(desk)
    done = desk.end_of_turn()
    assert isinstance(done, TurnDone), done
    plan = desk.store.surveys.plan(done.message.id)
    read = [identifier for part in plan.parts for identifier in part.passage_ids]
    assert read == [p.id for p in desk.library.passages(DocumentId(desk.document))]
    assert len(plan.parts) > 2
    turns = desk.engine.submitted
    assert len(turns) == plan.steps
    assert all(len(turn.tokens) + turn.sampling.max_tokens <= SMALL for turn in turns)
    assert all(turn.conversation != conversation for turn in turns), "behind the conversation the reader looks at"
    assert NOT_TOGETHER in done.message.text
    assert PUT_TOGETHER not in done.message.text, "no page bears it out"
    assert done.message.report.mode == "survey"


def test_the_answer_names_pages_and_cites_in_one_numbering(desk: Desk) -> None:
    begin(desk)
    message = desk.end_of_turn().message
    plan = desk.store.surveys.plan(message.id)
    second = plan.parts[1]
    assert f"({second.pages})" in message.text
    last = second.first_marker + len(second.passage_ids) - 1
    assert f"[{last}]" in message.text
    assert last in {citation.marker for citation in message.citations if citation.verified == "exact"}
    history = desk.engine.decode(message.tokens.ids)
    assert "[" not in history, "later questions never see numbers of passages that are not in their context"


def test_a_stop_keeps_the_notes_and_continuing_reads_the_rest(desk: Desk) -> None:
    stopped: list[str] = []

    def stop_at_the_third(event: Any) -> None:
        desk.events.put(event)
        if isinstance(event, TurnPhase) and event.phase == "surveying" and event.done == 2 and not stopped:
            stopped.append(event.turn)
            desk.turns.cancel(event.turn)

    desk.emit_through(stop_at_the_third)
    conversation = begin(desk)
    first = desk.end_of_turn().message
    assert first.state == "cancelled"
    assert first.text
    notes = desk.store.surveys.notes(first.id)
    assert len(notes) in (2, 3)
    before = len(desk.engine.submitted)
    desk.turns.continue_answer(conversation)
    done = desk.end_of_turn().message
    plan = desk.store.surveys.plan(done.id)
    assert done.id == first.id
    assert done.state == "complete"
    assert done.text.startswith(first.text)
    assert len(desk.engine.submitted) - before == plan.steps - len(notes)


def test_a_stop_in_the_first_part_still_tells_what_was_read(desk: Desk) -> None:
    desk.engine.hold_after = 3
    conversation = begin(desk)
    while not desk.engine.submitted:
        time.sleep(0.01)
    desk.turns.cancel(desk.turns.running()[conversation])
    stopped = desk.end_of_turn().message.report.tokens
    assert (stopped.prompt, stopped.generated) == (len(desk.engine.submitted[0].tokens), 3)
    desk.engine.hold_after = None
    desk.turns.continue_answer(conversation)
    done = desk.end_of_turn().message.report.tokens
    assert done.prompt == sum(len(turn.tokens) for turn in desk.engine.submitted), "both runs"


@pytest.mark.parametrize("question", [QUESTION, LIST])
def test_after_the_process_ended_it_goes_on_from_what_was_stored(desk: Desk, question: str) -> None:
    conversation = begin(desk, question)
    finished = desk.end_of_turn().message
    asked = len(desk.engine.submitted)
    with desk.store._database.transaction() as db:  # as a kill behind the second note leaves it
        db.execute("DELETE FROM survey_notes WHERE step >= 2")
        db.execute("UPDATE messages SET state = 'partial', report = NULL WHERE id = ?", [finished.id])
    desk.engine.submitted.clear()
    desk.turns.continue_answer(conversation)
    assert desk.end_of_turn().message.text == finished.text
    assert len(desk.engine.submitted) == asked - 2


def test_parts_that_say_nothing_are_counted_and_not_shown(desk: Desk) -> None:
    desk.engine.answer = [*desk.text_ids("Not here."), desk.end]
    begin(desk)
    message = desk.end_of_turn().message
    plan = desk.store.surveys.plan(message.id)
    assert message.text == f"Nothing about it was found in all {len(plan.parts)} parts read."
    assert len(desk.engine.submitted) == len(plan.parts), "nothing is put together"


def test_a_note_that_its_pages_do_not_bear_out_is_marked_and_left_out_of_the_end(desk: Desk) -> None:
    desk.engine.answer = [*desk.text_ids("Penguins swim across the Atlantic twice [1]."), desk.end]
    begin(desk)
    message = desk.end_of_turn().message
    plan = desk.store.surveys.plan(message.id)
    assert message.text.count("these pages do not bear this out") == len(plan.parts)
    assert "All together" not in message.text
    assert len(desk.engine.submitted) == len(plan.parts)


def test_partial_results_are_seen_while_it_runs(desk: Desk) -> None:
    begin(desk)
    shown = desk.until(TurnText)
    assert shown.delta.startswith("**")
    phase = desk.until(TurnPhase)
    assert (phase.phase, phase.done) == ("surveying", 1)
    assert phase.seconds_left is not None
    desk.end_of_turn()


def test_what_streams_is_all_of_the_answer(desk: Desk) -> None:
    streamed: list[str] = []
    desk.emit_through(lambda e: (streamed.append(e.delta) if isinstance(e, TurnText) else None, desk.events.put(e)))
    begin(desk)
    message = desk.end_of_turn().message
    assert "".join(streamed) == message.text
    assert NOT_TOGETHER in streamed[-1]


def test_only_what_the_model_said_is_cited(desk: Desk) -> None:
    begin(desk)
    message = desk.end_of_turn().message
    plan, notes = desk.store.surveys.plan(message.id), desk.store.surveys.notes(message.id)
    claims = [message.text[c.answer_start :][: c.answer_count] for c in message.citations]
    assert claims
    assert all("**" not in claim and "(page" not in claim for claim in claims)
    said = models_words(plan, notes, set(range(len(plan.parts))), message.text)
    assert len(said) == len(message.text)
    assert said.split() == " ".join(notes[step] for step in range(len(plan.parts))).split()


def test_only_the_pages_of_the_scope_are_read(desk: Desk) -> None:
    begin(desk, label="page 3", document_id=desk.document, first=2, last=2)
    message = desk.end_of_turn().message
    plan = desk.store.surveys.plan(message.id)
    read = [desk.library.passage(i) for part in plan.parts for i in part.passage_ids]
    assert all(2 in {r.page_index for r in passage.ranges} for passage in read)
    assert plan.scope == "page 3"


def test_the_engine_forgets_what_the_parts_left(desk: Desk) -> None:
    commands: list[Any] = []
    send = desk.engine.send
    desk.engine.send = lambda command: (commands.append(command), send(command))[1]
    begin(desk)
    message = desk.end_of_turn().message
    assert [c for c in commands if isinstance(c, DropState)] == [DropState(f"survey:{message.id}", disk=True)]


def test_the_next_question_follows_a_survey(desk: Desk) -> None:
    conversation = begin(desk)
    desk.end_of_turn()
    desk.store.set_mode(conversation, "passages")
    desk.turns.ask(conversation, "And which of them is longest?")
    done = desk.end_of_turn()
    assert isinstance(done, TurnDone), done
    question, answer, later, _ = desk.store.messages(conversation)
    assert desk.engine.submitted[-1].tokens.ids == question.tokens.ids + answer.tokens.ids + later.tokens.ids


def test_a_kill_while_another_answer_begins_leaves_the_survey_or_the_new_one(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process sees, or the next one after a kill: nothing has to be undone."""
    conversation = begin(desk)
    desk.end_of_turn()
    before, seen, planned = desk.store.messages(conversation), [], survey_start.survey_plan
    elsewhere = ConversationStore(tmp_path / "c.db")

    def plan(*given: Any) -> Any:
        seen.append(elsewhere.messages(conversation))
        return planned(*given)

    def begun(event: Any) -> None:
        desk.events.put(event)
        if isinstance(event, TurnStarted):
            seen.append(elsewhere.messages(conversation))

    monkeypatch.setattr(survey_start, "survey_plan", plan)
    desk.emit_through(begun)
    desk.turns.regenerate(conversation)
    assert isinstance(desk.end_of_turn(), TurnDone)
    while_planned, when_begun = seen
    assert while_planned == before
    assert [(m.role, m.state) for m in when_begun] == [("user", "complete"), ("assistant", "partial")]
    assert elsewhere.surveys.plan(when_begun[-1].id) is not None, "it goes on from there"
    elsewhere.close()


def test_a_survey_of_which_a_part_is_in_doubt_says_so(desk: Desk) -> None:
    desk.engine.doubtful = 1
    begin(desk)
    message = desk.end_of_turn().message
    assert message.report.doubtful == len(message.tokens) > 0


def test_a_doubtful_survey_that_ends_in_an_error_still_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    take = Survey._take

    def failing(survey: Survey, step: int, note: str) -> None:
        if step == 1:
            raise UserError("The model failed.", "It ran out of memory.", "Ask again.")
        take(survey, step, note)

    monkeypatch.setattr(Survey, "_take", failing)
    desk.engine.doubtful = 1
    conversation = begin(desk)
    assert isinstance(desk.end_of_turn(), TurnError)
    answer = desk.store.messages(conversation)[-1]
    assert answer.report.doubtful == len(answer.tokens) > 0


def test_a_survey_that_cannot_start_again_stays(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = begin(desk)
    desk.end_of_turn()
    before = desk.store.messages(conversation)

    def unreadable(*_: object) -> None:
        raise UserError("The document cannot be read.", "It was moved.", "Add it again.")

    monkeypatch.setattr("app.core.turn_work.begin_survey", unreadable)
    desk.turns.regenerate(conversation)
    assert isinstance(desk.end_of_turn(), TurnError)
    assert desk.store.messages(conversation) == before


def test_a_plan_survives_its_json(desk: Desk) -> None:
    searched = desk.planner_scopes.of(None, QUESTION, [desk.document])
    plan = survey_plan(QUESTION, searched, desk.texts, desk.library, desk.format, SMALL, lambda _: False)
    assert SurveyPlan.from_json(plan.to_json()) == plan
    rest = survey_plan(
        QUESTION, searched, desk.texts, desk.library, desk.format, SMALL, {plan.parts[0].passage_ids[0]}.__contains__
    )
    assert plan.parts[0].passage_ids[0] not in rest.parts[0].passage_ids


@pytest.mark.parametrize(("question", "told"), [(LIST, ""), (COUNT, ", counted by Pagekeep")])
def test_a_list_is_collected_from_the_notes_and_every_entry_is_cited(desk: Desk, question: str, told: str) -> None:
    def copies(turn: Any) -> list[int]:
        first = " ".join(desk.engine.decode(turn.tokens.ids).split("[1] ")[-1].split()[:12])
        return [*desk.text_ids(f"- {first}\n- Penguins swim across the Atlantic twice.\n- {first}"), desk.end]

    desk.engine.answer = copies
    begin(desk, question)
    message = desk.end_of_turn().message
    plan = desk.store.surveys.plan(message.id)
    assert len(desk.engine.submitted) == len(plan.parts), "the model is not asked to tell the list again"
    assert all("List all rules about time" in desk.engine.decode(turn.tokens.ids) for turn in desk.engine.submitted)
    notes, together = message.text.split(f"**All together** ({len(plan.parts)} entries{told})\n\n")
    items = [line for line in together.splitlines() if line.startswith("- ")]
    assert len(items) == len(plan.parts)
    assert all(re.search(r"\[\d+\]$", item) for item in items)
    assert notes.count("- ") == len(plan.parts)
    assert "Penguins" not in message.text
    assert CHOSEN in message.text
    borne_out = {citation.marker for citation in message.citations if citation.verified != "not_found"}
    assert {int(item.rsplit("[", 1)[1][:-1]) for item in items} <= borne_out


def test_a_note_that_is_cut_is_told(desk: Desk) -> None:
    part = "Keys are kept at the desk. " * 40
    desk.engine.ending = "length"
    desk.engine.answer = lambda turn: desk.text_ids(part)[: turn.sampling.max_tokens]
    begin(desk)
    message = desk.end_of_turn().message
    assert "Keys are kept at the desk. …" in message.text
    assert message.text.endswith("Notes that end in “…” were cut: there may be more.")


def test_a_summary_is_asked_of_every_part_in_the_same_words(desk: Desk) -> None:
    begin(desk, "Please summarise sample.pdf")
    desk.end_of_turn()
    parts = [desk.engine.decode(turn.tokens.ids) for turn in desk.engine.submitted]
    assert all("Summarise these passages in two or three sentences." in part for part in parts[:-1])
    assert "Please summarise sample.pdf" in parts[-1]


def test_short_documents_that_are_read_together_are_named(desk: Desk, tmp_path: Path) -> None:
    texts = {"one.pdf": "The first note says that tea is served at four.", "two.pdf": "The second one is about boats."}
    ids = [int(desk.library.add(write_pdf(tmp_path / name, [[text]])).id) for name, text in texts.items()]
    searched = desk.planner_scopes.of(None, QUESTION, ids)
    plan = survey_plan(QUESTION, searched, desk.texts, desk.library, desk.format, SMALL, lambda _: False)
    (part,) = plan.parts
    assert part.pages == "one.pdf, page 1; two.pdf, page 1"


@pytest.mark.parametrize("question", [LIST, COUNT])
def test_a_list_of_inventions_is_told_and_not_shown(desk: Desk, question: str) -> None:
    desk.engine.answer = [*desk.text_ids("There are 3:\n- Penguins swim twice\n- Whales sing\n- 3"), desk.end]
    begin(desk, question)
    message = desk.end_of_turn().message
    plan = desk.store.surveys.plan(message.id)
    assert "Penguins" not in message.text
    assert "3" not in re.sub(r"\(page.*?\)", "", message.text).replace(f" {len(plan.parts)} ", "")
    assert f"on {len(plan.parts)} of {len(plan.parts)} parts" in message.text
    assert all(part.pages in message.text for part in plan.parts)
    assert not message.citations


def test_a_count_over_a_single_part_is_made_here(desk: Desk) -> None:
    desk.engine.answer = lambda turn: [
        *desk.text_ids("- " + "\n- ".join(sentences_in(desk.engine.decode(turn.tokens.ids))[:2]) + "\n- 17 others"),
        desk.end,
    ]
    begin(desk, COUNT, label="page 3", document_id=desk.document, first=2, last=2)
    message = desk.end_of_turn().message
    assert len(desk.store.surveys.plan(message.id).parts) == 1
    assert "\n\n2 entries, counted by Pagekeep.\n\n" in message.text
    assert "17" not in message.text


def sentences_in(prompt: str) -> list[str]:
    passage = prompt.split("[1] ")[-1].split("\n\nList all")[0]
    return [s for s in re.findall(r"[A-Z][^.\n]+\.", passage) if len(s.split()) >= 8]


def test_a_comparison_quotes_what_was_found_for_each_side(desk: Desk) -> None:
    desk.engine.answer = [*desk.text_ids("Penguins swim across the Atlantic twice."), desk.end]
    message = compare(desk, "Compare the trash with the fees")
    plan = desk.store.surveys.plan(message.id)
    assert [part.title for part in plan.parts] == ["trash", "fees"]
    assert [f"What do these passages say about {side}?" in desk.engine.decode(turn.tokens.ids)
            for side, turn in zip(("trash", "fees"), desk.engine.submitted, strict=False)] == [True, True]  # fmt: skip
    quotes = re.findall(r"^- “(.+)” \[(\d+)\]$", message.text, re.MULTILINE)
    assert len(quotes) in (2, 3, 4)
    exact = {citation.marker for citation in message.citations if citation.verified == "exact"}
    assert {int(marker) for _, marker in quotes} <= exact
    for part in plan.parts:
        assert f"**{part.about}** ({part.pages})" in message.text
    assert message.text.endswith("Compared from the passages found for each side, not from every page.")
    assert SurveyPlan.from_json(plan.to_json()) == plan


def test_a_comparison_with_nothing_found_for_a_side_shows_no_inventions(desk: Desk) -> None:
    desk.engine.answer = [*desk.text_ids("A zeppelin costs twice as much as the trash."), desk.end]
    message = compare(desk, "How does the trash compare with zeppelins?")
    parts = len(desk.store.surveys.plan(message.id).parts)
    assert parts > 2, "everything was read"
    assert f"What the model wrote on {parts} of {parts} parts" in message.text
    assert "twice" not in message.text
